"""Loads library logic and launches tuned kernels: `tunesmith.load(...).matmul(a, b)`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from numpy import ndarray

from tunesmith._collector import collector_paused
from tunesmith.devices import Device
from tunesmith.logic import Choice, Logic, logic_files
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.records import Problem, ProblemType, Target, UserError, Value, unraised_copy

from ._asked import nothing_legal, sizes_asked_for, type_asked_for
from ._configurations import check_configurations
from ._device import DeviceAbsentError, absent, check_distinct, context_kept, no_logic, open_for, open_gpu, open_untuned
from ._shipped import shipped_logics
from .launch._heuristic import policies_know
from .launch._launcher import Launcher, LaunchRecord
from .launch._locks import IMPORTS, call_lock
from .launch._named_operands import LaunchRequest, NamedOperandLaunch
from .launch._predicted import PredictedChoices

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from ._typed import MatmulOptions, TensorT
    from .gemm._products import Products

LOGIC_VARIABLE = "TUNESMITH_LOGIC"
"""The environment variable with a file or folder of logic for `load` without a path."""


def load(
    path: Path | str | None = None,
    *,
    device: Device | str | None = None,
    launched: Callable[[LaunchRecord], None] | None = None,
    strict: bool = False,
    floor: bool = True,
) -> Library:
    """A library from one logic file, or from all of them in a folder and below. Without a `path`, from what the
    variable TUNESMITH_LOGIC names, if it is set, and from the logic that ships with tunesmith for the devices used.

    `device` is a selector, a part of a device's name or an open device, to use instead of the device that the logic was
    made on. `launched` is called after every launch. With `strict`, a product that no logic is for is a UserError.
    Without `floor`, the host's BLAS gets only what a logic gives it (docs/library.md, "The floor on a CPU"). A file of
    several that cannot be used is left out with a warning; a later error about a missing type names the file. Raises
    UserError if no file can be used, or if two files are for the same problem type and device.
    """
    ships = path is None
    path = os.environ.get(LOGIC_VARIABLE) if path is None else path
    if not path:
        return Library((), device=device, launched=launched, strict=strict, floor=floor, ships=ships)
    folder = Path(path)
    files = logic_files(folder)
    if not files:
        raise UserError(str(folder), "holds no library logic", "name the output folder of `tunesmith tune`")
    logics: list[tuple[Path, Logic]] = []
    left_out: list[UserError] = []
    for file in files:
        try:
            with collector_paused():
                logic = Logic.load(file)
                check_configurations(file, logic)
            logics.append((file, logic))
        except UserError as error:
            left_out.append(error)
    if not logics:
        raise left_out[0]
    for reason in left_out:
        warnings.warn(f"{reason}; its problem type is left out", stacklevel=2)
    more: dict[str, Any] = {"strict": strict, "floor": floor, "ships": ships}
    return Library(logics, device=device, launched=launched, left_out=left_out, **more)


class Library:
    """Tuned solutions on one device. The device is opened, and solutions are compiled, at their first use.

    `matmul` and `select` also serve types and devices without a logic, unless the library is `strict`: by the BLAS of a
    GPU's vendor (`Rule.VENDOR`), or by a policy's choice (`Rule.HEURISTIC`). On the host's CPU the BLAS is the choice
    unless a kernel is known to be faster, host time included; without `floor`, it is not. If the library `ships`, the
    logic in the package serves the types that have no other, on the devices that it is for (`_shipped`). Calls from
    several threads run one after the other, except those of the BLAS.
    """

    def __init__(
        self,
        logics: Sequence[tuple[Path, Logic]],
        *,
        device: Device | str | None = None,
        launched: Callable[[LaunchRecord], None] | None = None,
        left_out: Sequence[UserError] = (),
        strict: bool = False,
        floor: bool = True,
        ships: bool = False,
    ) -> None:
        check_distinct(logics)
        self._logics, self._requested, self._left_out = logics, device, left_out
        self._strict, self._floor, self._ships = strict, floor, ships
        self._lock = call_lock()
        self._launchers: dict[str, Launcher] = {}
        self._launched = launched
        self._products: Products | None = None
        self._operands = NamedOperandLaunch(self._launcher_on, self._lock, launched)

    @property
    def problem_types(self) -> tuple[ProblemType, ...]:
        """The problem types of the logics that are used on this machine's device."""
        return tuple(self._launcher_on("").logics)

    @property
    def target(self) -> Target:
        """The library's device."""
        return self._launcher_on("").device.target

    def measured_sizes(self, problem_type: ProblemType) -> tuple[tuple[int, ...], ...]:
        """The sizes with natural leading dimensions that a type's logic has times of; KeyError for an unknown type."""
        rows = self._launcher_on("").logics[problem_type].document.rows
        return tuple(row.sizes for row in rows if not row.leading)

    def select(self, *sizes: int, problem_type: ProblemType | str = "") -> Choice:
        """The choice for a problem of these sizes with natural leading dimensions. It is launched if it compiles.

        `sizes` are one size for each index of the problem type, in the type's order. A GEMM without a batch takes
        M, N, 1, K as well as M, N, K. Sizes are those of column-major matrices, as in BLAS: `matmul` of row-major
        arrays is the problem of the transposed product, so M and N change places. `problem_type` names the type if
        there are several; a GEMM type needs no logic. Raises ValueError for sizes that are not whole numbers of at
        least 1, for a wrong number of sizes, and for an unknown or ambiguous type; UserError if no solution is legal
        at these sizes.
        """
        launcher = self._any_launcher_on("")
        kind = self._selected(launcher, problem_type)
        problem = Problem(kind, sizes_asked_for(kind, sizes))
        with self._lock:
            choice = next(launcher.choices(problem), None)
            if choice is None:
                raise launcher.unused.get(kind) or nothing_legal(problem, launcher.refusals(problem))
        return choice

    def says(self, *sizes: int, problem_type: str = "") -> Choice:
        """`select` without the device and its library's plans: the type's first logic decides, legal here or not."""
        logics = {logic.document.problem_type: (file, logic) for file, logic in reversed(self._logics)}
        kind = type_asked_for(logics, problem_type)
        file, logic = logics[kind]
        return next(PredictedChoices([file]).candidates(logic, Problem(kind, sizes_asked_for(kind, sizes))))

    @overload
    def launch(
        self,
        problem_type: ProblemType | str,
        operands: Mapping[str, NDArray[Any]] | None = None,
        /,
        *,
        sizes: Mapping[str, int] | None = None,
        scalars: Mapping[str, Value] | None = None,
        stream: Any = None,
        **named: NDArray[Any] | float,
    ) -> NDArray[Any] | Any: ...

    @overload
    def launch(
        self,
        problem_type: ProblemType | str,
        operands: Mapping[str, TensorT] | None = None,
        /,
        *,
        sizes: Mapping[str, int] | None = None,
        scalars: Mapping[str, Value] | None = None,
        stream: Any = None,
        **named: TensorT | float,
    ) -> TensorT | Any: ...

    @overload
    def launch(
        self, problem_type: ProblemType | str, operands: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Any: ...

    def launch(
        self,
        problem_type: ProblemType | str,
        operands: Mapping[str, Any] | None = None,
        /,
        *,
        sizes: Mapping[str, int] | None = None,
        scalars: Mapping[str, Value] | None = None,
        stream: Any = None,
        **named: Any,
    ) -> Any:
        """Choose, compile and launch a solution for any problem type with a loaded logic. Returns the output, or
        several outputs by name.

        `problem_type` is the type, its name, or the name of its operation if that has one type. Operands are arrays by
        the operation's operand names, as keywords or in `operands`, in the operation's logical shapes and strides (a
        kernel of your own: dense and row-major). No operand is copied. Sizes are read off the shapes; `sizes` has the
        sizes that no shape shows. Scalars of the problem (a GEMM's alpha) are keywords, too, or in `scalars`.

        Arrays are NumPy arrays, torch tensors, and objects with `__cuda_array_interface__` or `__dlpack__`. A missing
        output is allocated where the first operand lies; on a GPU this needs torch tensors. On a GPU the call returns
        before the work is done: torch tensors use torch's current stream, other arrays use `stream`.

        Raises TypeError for missing or unknown operands, scalars or sizes, for wrong data types, and for an array that
        is not a torch tensor beside tensors on a GPU; ValueError for wrong shapes, strides or devices, for types
        without a logic, and for outputs that are read-only or share memory with another operand; UserError if the
        type's logic cannot be used or no solution runs; `devices.LaunchError` if the device fails.
        """
        kind = type_asked_for({logic.document.problem_type for _, logic in self._logics}, problem_type, self._left_out)
        request = LaunchRequest.of(kind, {**(operands or {}), **named}, sizes or {}, scalars or {})
        return self._operands.launch(request, stream)

    @overload
    def matmul(
        self,
        a: NDArray[Any],
        b: NDArray[Any],
        out: NDArray[Any] | None = None,
        **options: Unpack[MatmulOptions[NDArray[Any]]],
    ) -> NDArray[Any]: ...

    @overload
    def matmul(
        self, a: TensorT, b: TensorT, out: TensorT | None = None, **options: Unpack[MatmulOptions[TensorT]]
    ) -> TensorT: ...

    @overload
    def matmul(self, a: Any, b: Any, out: Any = None, **options: Unpack[MatmulOptions[Any]]) -> Any: ...

    def matmul(
        self,
        a: Any,
        b: Any,
        out: Any = None,
        *,
        bias: Any = None,
        activation: str | None = None,
        residual: Any = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        c: Any = None,
        scale_a: Any = None,
        scale_b: Any = None,
        out_dtype: Any = None,
        stream: Any = None,
    ) -> Any:
        """activation(alpha scale_a scale_b a b + bias) + beta c, for matrices (2-D) or batches of matrices (3-D; a
        single matrix is used for the whole batch).

        Arguments are NumPy arrays, torch tensors, and objects with `__cuda_array_interface__` or `__dlpack__`, all on
        one device. Arrays on a GPU are multiplied there, arrays on the host by the logic's device. Rows or columns may
        be contiguous, or lie further apart; docs/library.md lists what is copied, and the data types. `bias` has a
        number for each column of the result. `activation` is "relu", "gelu" or "silu". A `residual` is c with beta = 1.
        With beta = 0, c is not read. Scales are numbers, or one float32 on the device.

        If no logic has the epilogue, it is computed after the product. If no logic has the product, the host's BLAS
        computes it, or a policy chooses its kernel. A warning tells of either case once. The result is `out`, which may
        be one of the operands, or a new row-major array of `out_dtype` (by default the operands' type; bfloat16 for
        float8, int32 for int8).

        On a GPU the call returns before the work is done: torch tensors use torch's current stream, other arrays use
        `stream`. Raises TypeError and ValueError as NumPy does, UserError if no kernel takes the data type or the
        library is strict and has no logic for the product, and `devices.LaunchError` if the device fails.
        """
        products = self._products or self._begun_products()
        if (
            (products.host.products or products.torch.repeat)
            and (bias is activation is residual is c is out_dtype is stream is None)
            and (alpha.__class__ is float and alpha == 1.0 and beta.__class__ is float and beta == 0.0)
        ):
            result = products.torch.repeat(a, b, out, scale_a, scale_b) if products.torch.repeat else None
            if result is None and scale_a is scale_b is None:
                is_numpys = a.__class__ is ndarray is b.__class__ and (out is None or out.__class__ is ndarray)
                host = products.host
                result = (host.known_product if is_numpys else host.known_product_of_tensors)(a, b, out)
            if result is not None:
                return result
        arguments = a, b, c, bias, scale_a, scale_b, out
        return products.matmul(arguments, residual, (activation, alpha, beta), out_dtype, stream)

    def close(self) -> None:
        """Release programs and memory, and close the device if the library opened it."""
        with self._lock:
            if self._products:
                self._products.clear()
            self._operands.clear()
            for launcher in set(self._launchers.values()):
                launcher.close()
                if not isinstance(self._requested, Device):
                    launcher.device.close()
            self._launchers.clear()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _begun_products(self) -> Products:
        with IMPORTS:
            from .gemm._products import Products  # a program that makes no product does without

        with self._lock:
            if self._products is None:
                self._products = Products(self._any_launcher_on, self._lock, self._launched)
            return self._products

    def _selected(self, launcher: Launcher, requested: ProblemType | str) -> ProblemType:
        """The requested type: one with a logic, else any GEMM type that policies choose kernels for on this device."""
        kinds = (*launcher.logics, *(launcher.unused if requested or launcher.absent else ()))
        try:
            return type_asked_for(kinds, requested, self._left_out)
        except ValueError:
            kind = requested if isinstance(requested, ProblemType) else gemm_type_named(requested)
            if kind is None or kind.operation != "GEMM" or self._strict or not policies_know(launcher.device.target):
                raise
            return kind

    def _launcher_on(self, selector: str) -> Launcher:
        """The launcher of the GPU with this selector, opened if need be; of the library's own device for "". Raises
        UserError if the library was loaded for another device, and DeviceAbsentError if no logic was made on it."""
        with self._lock:
            launcher = self._launchers.get(selector)
            if launcher is None:
                launcher = self._opened_gpu(selector) if selector else self._opened_own()
                self._launchers[selector] = launcher
            if launcher.absent:
                raise unraised_copy(launcher.absent)
            return launcher

    def _any_launcher_on(self, selector: str) -> Launcher:
        """Like `_launcher_on`, for calls that need no logic. If the logics' device is absent, arrays on the host go to
        another device of this machine."""
        with self._lock:
            if selector not in self._launchers:
                try:
                    self._launcher_on(selector)
                except DeviceAbsentError as why:
                    if selector not in self._launchers:
                        absent_error = unraised_copy(why)
                        device = self._opened_untuned(absent_error)
                        self._launchers[selector] = self._launcher_for(device, (), absent_error)
            return self._launchers[selector]

    def _opened_own(self) -> Launcher:
        """The launcher of the library's own device. Raises DeviceAbsentError if there is no logic for it."""
        if self._ships and not self._logics:
            return self._launcher_for(open_untuned(self._requested), (), no_logic())
        return self._launcher_for(*open_for(self._logics, self._requested))

    def _opened_untuned(self, why: DeviceAbsentError) -> Device:
        try:
            return open_untuned(self._requested)
        except UserError as error:
            if not self._logics:
                raise
            raise why from error

    def _opened_gpu(self, selector: str) -> Launcher:
        own = self._launchers.get("")
        if self._requested is None and not (own and own.device.target.selector == selector):
            return self._launcher_for(*open_gpu(self._logics, selector))
        with nullcontext() if own or isinstance(self._requested, Device) else context_kept():
            launcher = self._any_launcher_on("")
        target = launcher.device.target
        if not launcher.on_gpu or target.selector != selector:
            what = f"the tensors lie on {selector}, the library works on {target.selector} ({target.name})"
            raise UserError("matmul", what, f"load it with device={selector!r}, or without a device")
        return launcher

    def _launcher_for(
        self, device: Device, used: Iterable[tuple[Path, Logic]], absent_error: DeviceAbsentError | None = None
    ) -> Launcher:
        logics = {logic.document.problem_type: (file, logic) for file, logic in used}
        if self._ships:
            logics = shipped_logics(device.target, warnings.warn) | logics
            absent_error = None if logics else absent_error
        unused = {
            logic.document.problem_type: absent(file, logic, device.target)
            for file, logic in self._logics
            if logic.document.problem_type not in logics
        }
        launcher = Launcher(device, logics, unused, self._left_out, absent_error, self._strict)
        if self._floor and device.target.kind == "CPU":
            with IMPORTS:
                from .gemm._floor import Floor  # as in `_begun_products`
                from .gemm._host_costs import HostCosts

            launcher.floor = Floor(device.target, launcher.logics, HostCosts(launcher))
        return launcher
