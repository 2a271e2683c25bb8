"""The front door of a tuned program: `tunesmith.load(...).matmul(a, b)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

from tunesmith.devices import Device
from tunesmith.devices.cuda.device import CudaDevice, context_kept
from tunesmith.kernels import KERNELS, tuning_space
from tunesmith.logic import Choice, Logic, logic_files, place_in
from tunesmith.problems import OPERATIONS, whole_size
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.records import Problem, ProblemType, Rejection, Target, UserError, Value, fresh

from ._device import DeviceAbsentError, absent, no_two_alike, open_for, open_gpu, open_untuned
from .arrays._libraries import as_tensor, dtype_name, torch_if_there
from .doors import door_of
from .gemm._call import Arguments, Scalars, settled
from .gemm._foreign_calls import ForeignCalls
from .gemm._host_calls import HostCalls, on_host
from .gemm._torch_calls import TorchCalls
from .launch._heuristic import policies_know
from .launch._launcher import Launched, Launcher, with_left_out
from .launch._locks import call_lock
from .launch._operand_calls import LaunchRequest, OperandCalls

TOO_LARGE = "maximum allocation"
"""Why families refuse an operand that is larger than any buffer of the device."""


def load(
    path: Path | str, *, device: Device | str | None = None, launched: Callable[[Launched], None] | None = None
) -> Library:
    """A library from one logic file, or from all of them in a folder and below.

    `device` is a selector or an open device to use instead of the one that the logic was made on. `launched` hears of
    every launch. Of several files, one that cannot be used is left out with a warning, and named where something is
    missing. Raises UserError where none can be used, and for two of one problem type and device.
    """
    folder = Path(path)
    files = logic_files(folder)
    if not files:
        raise UserError(str(folder), "holds no library logic", "name the output folder of `tunesmith tune`")
    logics: list[tuple[Path, Logic]] = []
    left_out: list[UserError] = []
    for file in files:
        try:
            logic = Logic.load(file)
            _check_configurations(file, logic)
            logics.append((file, logic))
        except UserError as error:
            left_out.append(error)
    if not logics:
        raise left_out[0]
    for reason in left_out:
        warnings.warn(f"{reason}; its problem type is left out", stacklevel=2)
    return Library(logics, device=device, launched=launched, left_out=left_out)


def _check_configurations(file: Path, logic: Logic) -> None:
    """Raise UserError where a solution names no kernel, or says of its parameters what no tuning file may."""
    remedy = "give a file that `tunesmith tune` wrote, with the same version of tunesmith"
    kind = logic.document.problem_type

    def wrong(what: str, *way: str | int, remedy: str = remedy) -> UserError:
        return UserError(place_in(file, *way), what, remedy)

    if kind.operation not in OPERATIONS:
        what = f"there is no operation {kind.operation}; there are {', '.join(OPERATIONS)}"
        raise wrong(what, "problem-type", "operation", remedy="install the distribution that has it")
    for number, named in enumerate(logic.document.solutions):
        solution, way = named.solution, ("solutions", number)
        if solution.kernel not in KERNELS or KERNELS[solution.kernel].operation != kind.operation:
            what = f"solution {named.name}: there is no kernel {solution.kernel!r} of {kind.operation}"
            raise wrong(what, *way, "kernel")
        allowed = tuning_space(kind, hidden=True)
        for name in (parameter.name for parameter in KERNELS[solution.kernel].space(kind)):
            if name not in solution.configuration:
                raise wrong(f"solution {named.name}: {name} is missing", *way, "configuration")
            try:
                allowed[name].check(solution.configuration[name], name)
            except UserError as error:
                what = f"solution {named.name}: {error.what}"
                raise wrong(what, *way, "configuration", name, remedy=error.remedy) from error


class Library:
    """Tuned solutions on one device. The device is opened, and solutions are compiled, when they are first needed.

    `matmul` and `select` also serve types and devices without a logic: there a policy chooses (`Rule.HEURISTIC`).
    Calls from several threads come one after the other.
    """

    def __init__(
        self,
        logics: Sequence[tuple[Path, Logic]],
        *,
        device: Device | str | None = None,
        launched: Callable[[Launched], None] | None = None,
        left_out: Sequence[UserError] = (),
    ) -> None:
        no_two_alike(logics)
        self._all, self._asked, self._left_out = logics, device, left_out
        self._lock = call_lock()
        self._launchers: dict[str, Launcher] = {}
        products = self._any_launcher_on, self._lock, launched
        self._host, self._torch, self._foreign = HostCalls(*products), TorchCalls(*products), ForeignCalls(*products)
        self._operands = OperandCalls(self._launcher_on, self._lock, launched)

    @property
    def problem_types(self) -> tuple[ProblemType, ...]:
        """What it can compute, by the logic files that are used on this machine's device."""
        return tuple(self._launcher_on("").logics)

    @property
    def target(self) -> Target:
        """The device that is used."""
        return self._launcher_on("").device.target

    def measured_sizes(self, problem_type: ProblemType) -> tuple[tuple[int, ...], ...]:
        """The sizes that a type's logic has times of, those with natural leading dimensions; KeyError for no type."""
        rows = self._launcher_on("").logics[problem_type].document.rows
        return tuple(row.sizes for row in rows if not row.leading)

    def select(self, *sizes: int, problem_type: ProblemType | str = "") -> Choice:
        """What is launched for a problem of these sizes with natural leading dimensions, unless it does not compile.

        One size for each index of the problem type, in its order; for a GEMM without a batch, M, N, 1, K will do as
        well as M, N, K. They are column-major as in BLAS: `matmul` of row-major arrays is the problem of the transposed
        product, so M and N change places. `problem_type` names the type where there are several; a GEMM's need not have
        a logic. Raises ValueError for sizes that are no whole numbers from 1 on, and for sizes or a type that do not
        fit; UserError when nothing is legal there.
        """
        launcher = self._any_launcher_on("")
        kind = self._selected(launcher, problem_type)
        problem = Problem(kind, _sizes(kind, sizes))
        with self._lock:
            choice = next(launcher.choices(problem), None)
            if choice is None:
                raise launcher.sunk.get(kind) or _nothing_legal(problem, launcher.refusals(problem))
        return choice

    def says(self, *sizes: int, problem_type: str = "") -> Choice:
        """`select` without the device: what the first logic of the type prefers, legal on this machine or not."""
        logics = {logic.document.problem_type: logic for _, logic in reversed(self._all)}
        kind = _named(logics, problem_type)
        return logics[kind].choose(_sizes(kind, sizes))

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
        """Choose, compile and launch for any problem type that a logic was loaded for; an output is returned, several
        by name.

        `problem_type` is the type, its name, or its operation's name where that is one type. Operands are arrays by the
        names that the operation gives them, as keywords or in `operands`, in its logical shapes and strides (a kernel
        of your own: dense and row-major); none is copied. Sizes come from their shapes; `sizes` has the others.
        Scalars of the problem (a GEMM's alpha) are keywords, too, or in `scalars`. An output that is not given is made
        where the first operand lies: NumPy arrays, torch tensors, and what has `__cuda_array_interface__` or
        `__dlpack__`, which makes none. On a GPU nothing waits: torch tensors go on torch's current stream, others on
        `stream`.

        Raises TypeError for operands, scalars or sizes that are missing or unknown, for data types, and for what is no
        tensor beside torch's on a GPU, ValueError for shapes, strides, devices, types without a logic, and outputs that
        must not be written or share memory with another operand, UserError where the type's logic cannot be used or
        nothing runs, and `devices.LaunchError` when the device fails.
        """
        kind = _named({logic.document.problem_type for _, logic in self._all}, problem_type, self._left_out)
        request = LaunchRequest.of(kind, {**(operands or {}), **named}, sizes or {}, scalars or {})
        return self._operands.launch(request, stream)

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
        """activation(alpha scale_a scale_b a b + bias) + beta c, for matrices (2-D), or batches of them (3-D; one
        matrix serves a whole batch).

        NumPy arrays, torch tensors, and what has `__cuda_array_interface__` or `__dlpack__`, all on one device: that of
        the tensors, and for the host's memory the logic's. Rows or columns may be contiguous, or lie further apart;
        docs/library.md says what is copied, and which data types there are. `bias` has a number for each column of the
        result, `activation` is "relu", "gelu" or "silu", a `residual` is c with beta = 1, and with beta = 0, c is not
        read. Scales are numbers, or one float32 on the device. An epilogue that no logic was made for follows the
        product, and a product that no logic was made for is launched as a policy chooses; each is said once. The result
        has `out_dtype` (by default the operands' type; of float8 bfloat16, of int8 int32) and is row-major, or it is
        `out`, which may be one of the operands.

        On a GPU nothing waits: torch tensors go on torch's current stream, others on `stream`. Raises TypeError and
        ValueError as NumPy does, UserError where no kernel takes the data type, and `devices.LaunchError` when the
        device fails.
        """
        torch, there = torch_if_there(a, "a", stream)
        scalars = Scalars(activation, alpha, beta, "" if out_dtype is None else dtype_name(out_dtype))
        call = settled(Arguments(a, b, c, bias, scale_a, scale_b, out), scalars, residual)
        if there:
            return self._foreign.matmul(stream, *call) if torch is None else self._torch.matmul(torch, *call)
        made = self._host.matmul(None, *on_host(*call))
        if out is not None:
            return out
        return made if torch is None else as_tensor(torch, made)

    def close(self) -> None:
        """Give programs and memory back, and the device if it was opened here."""
        with self._lock:
            for calls in (self._host, self._torch, self._foreign, self._operands):
                calls.clear()
            for launcher in set(self._launchers.values()):
                launcher.close()
                if not isinstance(self._asked, Device):
                    launcher.device.close()
            self._launchers.clear()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _selected(self, launcher: Launcher, asked: ProblemType | str) -> ProblemType:
        """The type that is asked for: of those with a logic, else any GEMM's that policies choose kernels for here."""
        known = (*launcher.logics, *(launcher.sunk if asked or launcher.absent else ()))
        try:
            return _named(known, asked, self._left_out)
        except ValueError:
            kind = asked if isinstance(asked, ProblemType) else gemm_type_named(asked)
            if kind is None or kind.operation != "GEMM" or not policies_know(launcher.device.target):
                raise
            return kind

    def _launcher_on(self, selector: str) -> Launcher:
        """The library's own device without a selector, else the GPU that arrays lie on, opened if need be. Raises
        UserError where another one was asked for, and DeviceAbsentError where no logic was made on it."""
        with self._lock:
            launcher = self._launchers.get(selector)
            if launcher is None:
                launcher = (
                    self._opened_gpu(selector) if selector else self._launcher_for(*open_for(self._all, self._asked))
                )
                self._launchers[selector] = launcher
            if launcher.absent:
                raise fresh(launcher.absent)
            return launcher

    def _any_launcher_on(self, selector: str) -> Launcher:
        """The same for what needs no logic. The host's arrays go to a device of this machine where that of the logics
        is absent."""
        with self._lock:
            if selector not in self._launchers:
                try:
                    self._launcher_on(selector)
                except DeviceAbsentError as why:
                    if selector not in self._launchers:
                        without = fresh(why)
                        self._launchers[selector] = self._launcher_for(self._opened_untuned(without), (), without)
            return self._launchers[selector]

    def _opened_untuned(self, why: DeviceAbsentError) -> Device:
        try:
            return open_untuned(self._asked)
        except UserError as error:
            if not self._all:
                raise
            raise why from error

    def _opened_gpu(self, selector: str) -> Launcher:
        own = self._launchers.get("")
        if self._asked is None and not (own and own.device.target.selector == selector):
            return self._launcher_for(*open_gpu(self._all, selector))
        with nullcontext() if own or isinstance(self._asked, Device) else context_kept():
            launcher = self._any_launcher_on("")
        target = launcher.device.target
        if not isinstance(launcher.device, CudaDevice) or target.selector != selector:
            what = f"the tensors lie on {selector}, the library works on {target.selector} ({target.name})"
            raise UserError("matmul", what, f"load it with device={selector!r}, or without a device")
        return launcher

    def _launcher_for(
        self, device: Device, used: Iterable[tuple[Path, Logic]], without: DeviceAbsentError | None = None
    ) -> Launcher:
        logics = {logic.document.problem_type: (file, logic) for file, logic in used}
        sunk = {
            logic.document.problem_type: absent(file, logic, device.target)
            for file, logic in self._all
            if logic.document.problem_type not in logics
        }
        return Launcher(device, logics, sunk, self._left_out, without)


def _nothing_legal(problem: Problem, why: Mapping[str, Rejection]) -> UserError:
    """`why` has the reason by each solution's name."""
    reasons = "; ".join(f"{name}: {reason}" for name, reason in why.items())
    in_parts = problem.type.operation == "GEMM" and all(reason.reason == TOO_LARGE for reason in why.values())
    remedy = "ask for a part: `matmul` of arrays on the host makes such a product in halves" if in_parts else ""
    what = f"no solution is legal at {problem} ({reasons})"
    return UserError(problem.type.name, what, remedy or "tune for such sizes")


def _sizes(kind: ProblemType, given: tuple[int, ...]) -> tuple[int, ...]:
    """A size for each index, as a person gave them. Raises ValueError for what cannot be one."""
    sizes = door_of(kind).sizes(kind, given)
    return tuple(whole_size(kind, index, size) for index, size in zip(kind.indices, sizes, strict=True))


def _named(kinds: Collection[ProblemType], asked: ProblemType | str, left_out: Sequence[UserError] = ()) -> ProblemType:
    """The type that is asked for, by its name or its operation's; the only one for nothing."""
    fitting = [kind for kind in kinds if asked in ("", kind, kind.name, kind.operation)]
    if len(fitting) != 1:
        known = ", ".join(kind.name for kind in kinds)
        name = asked if isinstance(asked, str) else asked.name
        what = f"name one problem type of {known}" + (f", not {name!r}" if name else "")
        raise ValueError(with_left_out(what, left_out))
    return fitting[0]
