"""The front door of a tuned program: `tunesmith.load(...).matmul(a, b)`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import ArrayLike, NDArray

from tunesmith.devices import Device
from tunesmith.kernels import KERNELS, tuning_space
from tunesmith.logic import Choice, Logic, logic_files
from tunesmith.records import Problem, ProblemType, Target, UserError

from ._call import Call, checked
from ._device import no_two_alike, open_for
from ._launcher import REMEMBERED, Launched, Launcher
from ._ways import Layout, Way, best_way, bound, layout, take


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
        a: ArrayLike,
        b: ArrayLike,
        *,
        c: ArrayLike | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """alpha a b + beta c for matrices (2-D), or batches of them (3-D; one matrix serves a whole batch).

        float32, float64 or float16, in any layout: rows or columns may be contiguous, or lie further apart, and the
        matrices of a batch one after the other or interleaved; other views are copied, and so are arrays whose
        transposes or batches no logic was made for. With beta = 0, c is not read. The result is
        row-major, or `out`, which may be one of the operands. Raises TypeError and ValueError as NumPy does, UserError
        where no logic serves the data type, and `devices.LaunchError` when the device fails.
        """
        with self._lock:
            call = checked(a, b, c, alpha, beta, out, self._launcher.device.alignment)
            if 0 in call.sizes:
                return call.without_product()
            way = self._way(call)
            for part in map(call.matrix, range(call.out.shape[0])) if way.one_by_one else (call,):
                self._launch(part, way)
            return call.result

    def close(self) -> None:
        """Give programs and memory back, and the device if it was opened here."""
        with self._lock:
            if self._opened:
                self._opened[0].close(device=not isinstance(self._asked, Device))
                self._opened = None

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _way(self, call: Call) -> Way:
        """The best way for a call, remembered by its layout."""
        shape = layout(call)
        if shape not in self._ways:
            if len(self._ways) >= REMEMBERED:
                self._ways.clear()
            way = best_way(call, self._logics)
            if way is None:
                raise self._unserved(call)
            self._ways[shape] = way
        return self._ways[shape]

    def _launch(self, call: Call, way: Way) -> None:
        made = bound(call, way)
        reads = {"A": made.a.storage, "B": made.b.storage}
        if made.c is not None:
            reads["C"] = made.c.storage
        told = self._launcher.launch(self._logics[way.type], made.problem, reads, made.d)
        take(made)
        if self._launched:
            self._launched(told)

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
                self._opened = Launcher(device), logics
            return self._opened

    def _unserved(self, call: Call) -> UserError:
        wanted = call.out.dtype.name + (" with beta" if call.c is not None else "")
        known = ", ".join(kind.name for kind in self._logics)
        return UserError("matmul", f"no logic serves {wanted}; there are {known}", "tune a GEMM of that type")


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
