"""The front door of a tuned program: `tunesmith.load(...).matmul(a, b)`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tunesmith.devices import Device
from tunesmith.devices.cuda import CudaDevice, context_kept
from tunesmith.kernels import KERNELS, tuning_space
from tunesmith.library.arrays._matrices import Array, blank
from tunesmith.library.arrays._memory import as_tensor, dtype_name, host_array, on_gpu, torch_of
from tunesmith.library.gemm._call import Call, checked
from tunesmith.library.gemm._epilogue import finish
from tunesmith.library.gemm._foreign_calls import ForeignCalls
from tunesmith.library.gemm._gpu_call import arguments
from tunesmith.library.gemm._layouts import Layout, Way, best_way, bound, layout, take
from tunesmith.library.gemm._recipes import Gpu, unfused, unserved
from tunesmith.library.gemm._request import Told
from tunesmith.library.gemm._torch_calls import TorchCalls
from tunesmith.library.launch._launcher import REMEMBERED, Launched, Launcher
from tunesmith.logic import Choice, Logic, logic_files
from tunesmith.records import Problem, ProblemType, Target, UserError

from ._device import no_two_alike, open_for, open_gpu


def load(
    path: Path | str, *, device: Device | str | None = None, launched: Callable[[Launched], None] | None = None
) -> Library:
    """A library from one logic file, or from all of them in a folder and below.

    `device` is a selector or an open device to use instead of the one that the logic was made on. `launched` is told
    of every launch. Raises UserError for files that are no logic, and for two of one problem type and device.
    """
    place = Path(path)
    files = logic_files(place)
    if not files:
        raise UserError(str(place), "holds no library logic", "name the output folder of `tunesmith tune`")
    logics = [(file, Logic.load(file)) for file in files]
    for file, logic in logics:
        _check_configurations(file, logic)
    return Library(logics, device=device, launched=launched)


def _check_configurations(file: Path, logic: Logic) -> None:
    """Raise UserError where a solution names no kernel, or says of its parameters what no tuning file may."""
    remedy = "give a file that `tunesmith tune` wrote, with the same version of tunesmith"
    for named in logic.document.solutions:
        solution, place = named.solution, f"{file}: solution {named.name}"
        if solution.kernel not in KERNELS:
            raise UserError(place, f"there is no kernel {solution.kernel!r}", remedy)
        allowed = tuning_space(solution.type, hidden=True)
        for name in (parameter.name for parameter in KERNELS[solution.kernel].space(solution.type)):
            if name not in solution.configuration:
                raise UserError(place, f"{name} is missing", remedy)
            allowed[name].check(solution.configuration[name], place)


class Library:
    """Tuned solutions on one device. The device is opened, and solutions are compiled, when they are first needed.

    Calls from several threads come one after the other.
    """

    def __init__(
        self,
        logics: Sequence[tuple[Path, Logic]],
        *,
        device: Device | str | None = None,
        launched: Callable[[Launched], None] | None = None,
    ) -> None:
        no_two_alike(logics)
        self._all, self._asked = logics, device
        self._launched = launched
        self._lock = threading.RLock()
        self._ways: dict[Layout, Way] = {}
        self._opened: tuple[Launcher, dict[ProblemType, Logic]] | None = None
        self._gpus: dict[str, Gpu] = {}
        self._users = Told()
        self._torch = TorchCalls(self._gpu, self._lock, launched, self._users)
        self._foreign = ForeignCalls(self._gpu, self._lock, launched)

    @property
    def problem_types(self) -> tuple[ProblemType, ...]:
        """What it can compute, by the logic files that are used on this machine's device."""
        return tuple(self._logics)

    @property
    def target(self) -> Target:
        """The device that is used."""
        return self._launcher.device.target

    def measured_sizes(self, problem_type: ProblemType) -> tuple[tuple[int, ...], ...]:
        """The sizes that a type's logic has times of, those with natural leading dimensions; KeyError for no type."""
        return tuple(row.sizes for row in self._logics[problem_type].document.rows if not row.leading)

    def select(self, *sizes: int, problem_type: str = "") -> Choice:
        """What is launched for a problem of these sizes with natural leading dimensions, unless it does not compile.

        One size for each index of the problem type, in its order; for a GEMM without a batch, M, N, 1, K will do as
        well as M, N, K. They are column-major as in BLAS: `matmul` of row-major arrays is the problem of the transposed
        product, so M and N change places. `problem_type` names the type where there are several. Raises ValueError
        for sizes or a type that do not fit, UserError when nothing is legal there.
        """
        kind = _named(self._logics, problem_type)
        problem = Problem(kind, _fitting(sizes, kind))
        with self._lock:
            choice = next(self._launcher.choices(self._logics[kind], problem), None)
        if choice is None:
            raise UserError(kind.name, f"no solution is legal at {problem}", "tune for such sizes")
        return choice

    def says(self, *sizes: int, problem_type: str = "") -> Choice:
        """`select` without the device: what the first logic of the type prefers, legal on this machine or not."""
        logics = {logic.document.problem_type: logic for _, logic in reversed(self._all)}
        kind = _named(logics, problem_type)
        return logics[kind].choose(_fitting(sizes, kind))

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
        read. Scales are numbers, or one float32 on the device. What no logic was made for follows the product, which is
        said once. The result has `out_dtype` (by default the operands' type; of float8 bfloat16, of int8 int32) and is
        row-major, or it is `out`, which may be one of the operands.

        On a GPU nothing waits: torch tensors go on torch's current stream, others on `stream`. Raises TypeError and
        ValueError as NumPy does, UserError where no logic serves the data type, and `devices.LaunchError` when the
        device fails.
        """
        torch = torch_of(a)
        if torch is not None and a.is_cuda:
            if stream is not None:
                raise ValueError("torch tensors go on torch's current stream: use torch.cuda.stream(...)")
            call = arguments(a, b, out, bias, activation, residual, alpha, beta, c, scale_a, scale_b, out_dtype)
            return self._torch.matmul(torch, *call)
        if on_gpu(a):
            call = arguments(a, b, out, bias, activation, residual, alpha, beta, c, scale_a, scale_b, out_dtype)
            return self._foreign.matmul(*call, stream)
        if stream is not None:
            raise ValueError("a lies on the host; a stream goes with memory of a GPU")
        made = self._on_host(
            host_array(a, "a"),
            host_array(b, "b"),
            host_array(out, "out"),
            c=host_array(c, "c"),
            residual=host_array(residual, "residual"),
            bias=host_array(bias, "bias"),
            scales=(host_array(scale_a, "scale_a"), host_array(scale_b, "scale_b")),
            activation=activation,
            alpha=alpha,
            beta=beta,
            dest="" if out_dtype is None else dtype_name(out_dtype),
        )
        if out is not None:
            return out
        return made if torch is None else as_tensor(torch, made)

    def close(self) -> None:
        """Give programs and memory back, and the device if it was opened here."""
        with self._lock:
            launchers = {gpu.launcher for gpu in self._gpus.values()}
            launchers |= {self._opened[0]} if self._opened else set()
            self._torch.clear()
            self._foreign.clear()
            for gpu in self._gpus.values():
                gpu.close()
            for launcher in launchers:
                with _at_home(launcher.device):
                    launcher.close()
                if not isinstance(self._asked, Device):
                    launcher.device.close()
            self._gpus.clear()
            self._opened = None

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _on_host(self, a: Any, b: Any, out: Any, **more: Any) -> Array:
        """The call on NumPy arrays; torch tensors are such arrays in the same memory."""
        with self._lock:
            made = checked(a, b, out, self._launcher.device.alignment, **more)
            self._compute(made.call)
            return made.result

    def _compute(self, call: Call[Array]) -> None:
        if 0 in call.sizes:
            finish(np.zeros(call.out.shape, call.out.dtype), call)
            return
        way = self._way(call)
        if way.done != call.wanted:
            rest = unfused(call.wanted, way)
            self._users.of_what_follows(rest.left, rest.like)
            product = blank(call.out.shape, call.out.dtype.newbyteorder("="), self._launcher.device.alignment)
            self._compute(replace(call.only(way.done), out=product))
            finish(product, call)
            return
        for part in map(call.matrix, range(call.out.shape[0])) if way.one_by_one else (call,):
            self._launch(part, way)

    def _way(self, call: Call[Array]) -> Way:
        """The best way for a call, remembered by its layout."""
        shape = layout(call)
        if shape not in self._ways:
            if len(self._ways) >= REMEMBERED:
                self._ways.clear()
            way = best_way(call, self._logics)
            if way is None:
                raise unserved(call.wanted, self._logics)
            self._ways[shape] = way
        return self._ways[shape]

    def _launch(self, call: Call[Array], way: Way) -> None:
        made = bound(call, way)
        with _at_home(self._launcher.device):
            told = self._launcher.launch(self._logics[way.type], made.problem, made.reads, made.d)
        take(made)
        if self._launched:
            self._launched(told)

    def _gpu(self, selector: str) -> Gpu:
        """The GPU that tensors lie on, opened if need be. Raises UserError where another one was asked for."""
        if selector not in self._gpus:
            self._gpus[selector] = self._opened_gpu(selector)
        return self._gpus[selector]

    def _opened_gpu(self, selector: str) -> Gpu:
        if self._asked is None and not (self._opened and self._opened[0].device.target.selector == selector):
            device, logics = open_gpu(self._all, selector)
            launcher = Launcher(device, self._places)
        else:
            with nullcontext() if self._opened or isinstance(self._asked, Device) else context_kept():
                launcher, logics = self._open()
        device = launcher.device
        if not isinstance(device, CudaDevice) or device.target.selector != selector:
            what = (
                f"the tensors lie on {selector}, the library works on {device.target.selector} ({device.target.name})"
            )
            raise UserError("matmul", what, f"load it with device={selector!r}, or without a device")
        return Gpu(launcher, device, logics)

    @property
    def _places(self) -> list[Path]:
        return [file.parent for file, _ in self._all]

    @property
    def _launcher(self) -> Launcher:
        return self._open()[0]

    @property
    def _logics(self) -> dict[ProblemType, Logic]:
        return self._open()[1]

    def _open(self) -> tuple[Launcher, dict[ProblemType, Logic]]:
        with self._lock:
            if self._opened is None:
                device, logics = open_for(self._all, self._asked)
                self._opened = Launcher(device, self._places), logics
            return self._opened


def _at_home(device: Device) -> AbstractContextManager[None]:
    """On a GPU in the device's own context and on its own stream, whatever the thread did last."""
    return device.on(None) if isinstance(device, CudaDevice) else nullcontext()


def _named(kinds: Collection[ProblemType], name: str) -> ProblemType:
    fitting = [kind for kind in kinds if name in ("", kind.name)]
    if len(fitting) != 1:
        known = ", ".join(kind.name for kind in kinds)
        raise ValueError(f"name one problem type of {known}" + (f", not {name!r}" if name else ""))
    return fitting[0]


def _fitting(sizes: tuple[int, ...], kind: ProblemType) -> tuple[int, ...]:
    if kind.operation == "GEMM" and "Batch" not in kind.indices and len(sizes) == 4:
        if sizes[2] != 1:
            raise ValueError(f"{kind.name} has no batch, {sizes[2]} was given")
        return (*sizes[:2], sizes[3])
    if len(sizes) != len(kind.indices):
        raise ValueError(f"{kind.name} has the sizes {', '.join(kind.indices)}; {len(sizes)} numbers were given")
    return sizes
