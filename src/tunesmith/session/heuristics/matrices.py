"""Stores and final tables as matrices of times: one for each device and data type, with families of products."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tunesmith.formats.winners.final_matrix import is_final
from tunesmith.kernels import VENDOR
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.problems.gemm import Gemm
from tunesmith.problems.gemm.listed import ListedGemm, read_gemm_list
from tunesmith.records import Estimate, Problem, Solution, Target, UserError
from tunesmith.store import FILE_NAME, RACE, FolderStore, StoreLocation

from .finals import FailedCell, MatrixCell, TimedCell, cells_of_final, cells_of_store
from .plans import ForeseenProduct, plans_of, read_plans

LEAST_SOLUTIONS = 2
"""The fewest solutions that must have run on a problem: the best of fewer says nothing."""
ANCHOR = "anchor/"
"""The prefix of the rounds of the anchor, a cell that is repeated to see the machine drift."""


@dataclass(frozen=True, slots=True)
class RepeatSpread:
    """The noise of a matrix.

    `ratio` is the median of longest over shortest time of the `cells` that were measured in several rounds.
    `half_width` is the median half-width of all cells' intervals, relative to their times. NaN if there are no such
    cells.
    """

    cells: int
    ratio: float
    half_width: float

    @property
    def of_a_time(self) -> float:
        """The half-width, 0 if it is not known."""
        return 0.0 if math.isnan(self.half_width) else self.half_width


@dataclass(frozen=True)
class JudgedSubject:
    """Products of one data type on one device, as a matrix of times.

    `groups` says in words what the matrix's families are. `noise` is the noise of the measurements, `solutions` the
    median number of solutions that ran on a product.
    """

    target: Target
    data_type: str
    matrix: TimeMatrix
    groups: str
    noise: RepeatSpread
    solutions: float

    def __str__(self) -> str:
        return f"{self.data_type} on {self.target.name}"


@dataclass(frozen=True)
class MatrixTask:
    """The files to read. With lists of products (`sizes`), only their products are used, with their families. Products
    that are in a matrix of `without` are left out. Without `with_vendor`, so is the vendor's library: policies are
    judged against the best of our own kernels. `plans` are files of its plans."""

    sources: tuple[Path, ...]
    sizes: tuple[Path, ...] = ()
    without: tuple[Path, ...] = ()
    with_vendor: bool = False
    plans: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ReadMatrices:
    """The matrices of a task, and sentences about what was left out."""

    subjects: tuple[JudgedSubject, ...]
    notes: tuple[str, ...]


@dataclass
class _Gathered:
    """Times and failures of a device and data type, gathered by problem without its scalars, then by solution."""

    target: Target
    times: dict[Problem, dict[Solution, list[TimedCell]]] = field(default_factory=dict)
    failures: dict[Problem, dict[Solution, None]] = field(default_factory=dict)
    problems: dict[Problem, Problem] = field(default_factory=dict)

    def add(self, cell: MatrixCell) -> None:
        bare = cell.problem.bare
        if isinstance(cell, FailedCell):
            self.failures.setdefault(bare, {})[cell.solution] = None
            return
        self.times.setdefault(bare, {}).setdefault(cell.solution, []).append(cell)
        if cell.problem.scalars or bare not in self.problems:
            self.problems[bare] = cell.problem


class _ProductList:
    """The products of lists, in which the row of a problem is found by its sizes."""

    def __init__(self, rows: Sequence[ListedGemm]) -> None:
        self.rows = rows
        self._by_sizes: dict[tuple[int, int, int], list[ListedGemm]] = defaultdict(list)
        for row in rows:
            # A list is row-major: its m is a problem's N.
            self._by_sizes[row.n, row.m, row.k].append(row)

    @staticmethod
    def read(paths: Sequence[Path]) -> _ProductList:
        return _ProductList([row for path in paths for row in read_gemm_list(path)])

    def row_of(self, problem: Problem) -> ListedGemm | None:
        """The first row of a problem; None if there is none, or if the problem has leading dimensions of its own."""
        gemm, kind = Gemm.of(problem), problem.type
        rows = () if problem.leading else self._by_sizes.get((gemm.m, gemm.n, gemm.k), ())
        return next((row for row in rows if row.fits(kind) and row.sizes(kind) == problem.sizes), None)

    def missing(self, subjects: Sequence[JudgedSubject]) -> int:
        """How many rows are in no matrix."""
        rows = (self.row_of(problem) for subject in subjects for problem in subject.matrix.problems)
        known = {_product(row) for row in rows if row}
        return sum(_product(row) not in known for row in self.rows)


def read_matrices(task: MatrixTask) -> ReadMatrices:
    """Every matrix of the sources. Raises UserError for a file that cannot be read as one, and if no product is
    left."""
    names = ", ".join(map(str, task.sources))
    notes: list[str] = []
    cells_without = (cell for path in task.without for cell in _cells(path, notes.append, task.with_vendor))
    left_out = {cell.problem.bare for cell in cells_without if isinstance(cell, TimedCell)}
    gathered: dict[tuple[str, str, str, str], _Gathered] = {}
    for path in task.sources:
        for cell in _cells(path, notes.append, task.with_vendor):
            target, kind = cell.target, data_type_of(cell.problem)
            key = (target.api, target.name, target.architecture, kind)
            if cell.problem.bare not in left_out:
                gathered.setdefault(key, _Gathered(target)).add(cell)
    listed = _ProductList.read(task.sizes) if task.sizes else None
    planned = list(read_plans(task.plans))
    found = (_subject(key[3], times, listed, planned) for key, times in gathered.items())
    subjects = [subject for subject in found if subject]
    if not subjects:
        what = f"no product{' of the list' if listed else ''} on which {LEAST_SOLUTIONS} configurations ran"
        raise UserError(names, what, "give a store or the final's tables of a run that tuned GEMMs to its end")
    if task.plans:
        files, products = ", ".join(map(str, task.plans)), sum(len(subject.matrix.problems) for subject in subjects)
        unplanned = products - sum(len(subject.matrix.plans) for subject in subjects)
        if unplanned == products:
            raise UserError(files, f"has no plan of the {products} products", "ask on their device, in their data type")
        notes += [f"{unplanned} of {products} products have no plan in {files}"] if unplanned else []
    if listed and (missing := listed.missing(subjects)):
        lists = ", ".join(map(str, task.sizes))
        notes.append(f"{missing} of {len(listed.rows)} products of {lists} are in no matrix")
    return ReadMatrices(tuple(subjects), tuple(dict.fromkeys(notes)))


def data_type_of(problem: Problem) -> str:
    """The data type in words: `float32`, `tf32`, or `int8 to int32` if D has another type."""
    gemm = Gemm.of(problem)
    operands = "tf32" if gemm.tf32 else gemm.dtype
    return operands if gemm.dest == gemm.dtype else f"{operands} to {gemm.dest}"


def _cells(path: Path, note: Callable[[str], None], with_vendor: bool) -> Iterator[MatrixCell]:
    """Every time and failure of a GEMM by our kernels, and `with_vendor` by the vendor's library."""
    cells = cells_of_final(path, note) if is_final(path) else _of_store(path)
    kept = (cell for cell in cells if with_vendor or cell.solution.kernel != VENDOR)
    return (cell for cell in kept if cell.problem.type.operation == "GEMM")


def _of_store(path: Path) -> Iterator[MatrixCell]:
    if kept := FolderStore.of(path):
        return cells_of_store(kept)
    file = path / FILE_NAME if path.is_dir() else path
    if not file.exists():
        raise UserError(str(file), "is not there", f"give a {FILE_NAME}, its folder, or a *_Final.csv")
    return cells_of_store(FolderStore(StoreLocation(file)))


def _subject(
    data_type: str, gathered: _Gathered, listed: _ProductList | None, planned: Sequence[ForeseenProduct]
) -> JudgedSubject | None:
    """The matrix of one device and data type; None if no product is left."""
    families = {
        problem: family
        for problem, solutions in gathered.times.items()
        if len(solutions) >= LEAST_SOLUTIONS and all(problem.sizes) and (family := _family(problem, listed)) is not None
    }
    if not families:
        return None
    tried = [(*gathered.times[problem], *gathered.failures.get(problem, ())) for problem in families]
    solutions = tuple(dict.fromkeys(solution for row in tried for solution in row))
    columns = {solution: column for column, solution in enumerate(solutions)}
    seconds = np.full((len(families), len(solutions)), np.nan)
    failed = np.zeros(seconds.shape, bool)
    for row, problem in enumerate(families):
        for solution, cells in gathered.times[problem].items():
            seconds[row, columns[solution]] = statistics.median(cell.estimate.seconds for cell in _whole(cells))
        failed[row, [columns[solution] for solution in gathered.failures.get(problem, ())]] = True
    problems = tuple(gathered.problems[problem] for problem in families)
    is_listed = listed is not None and any(row.family for row in listed.rows)
    return JudgedSubject(
        gathered.target,
        data_type,
        TimeMatrix(
            problems,
            tuple(families.values()),
            solutions,
            seconds,
            failed=failed & np.isnan(seconds),
            plans=plans_of(planned, gathered.target.name, problems),
        ),
        "families of the list" if is_listed else "products of equal M and N",
        _noise([cells for problem in families for cells in gathered.times[problem].values()]),
        float(np.median(np.isfinite(seconds).sum(axis=1))),
    )


def _product(row: ListedGemm) -> ListedGemm:
    """A row's sizes and layout, which several rows of a list may have."""
    return replace(row, family="", weight=1.0)


def sides_of(problem: Problem) -> str:
    """The family of a product that a list names none for: its M and N."""
    gemm = Gemm.of(problem)
    return f"{gemm.m} x {gemm.n}"


def _family(problem: Problem, listed: _ProductList | None) -> str | None:
    """A product's family in the list, or by its M and N; None if there is a list without the product."""
    if listed is None:
        return sides_of(problem)
    row = listed.row_of(problem)
    return None if row is None else row.family or sides_of(problem)


def _whole(cells: Sequence[TimedCell]) -> Sequence[TimedCell]:
    """The cells that no race stopped early; all cells if there are none."""
    return [cell for cell in cells if not cell.round.startswith(RACE)] or cells


def _noise(times: Sequence[Sequence[TimedCell]]) -> RepeatSpread:
    """The noise of all cells, without the anchor's rounds and, if a cell has other times, without its races: a race
    times too loosely to show noise."""
    return spread_of([cell.estimate for cell in _whole(cells) if not cell.round.startswith(ANCHOR)] for cells in times)


def spread_of(times: Iterable[Sequence[Estimate]]) -> RepeatSpread:
    """The noise of cells, each given with its times in all rounds."""
    ratios, widths = [], []
    for rounds in times:
        seconds = [time.seconds for time in rounds]
        ratios += [max(seconds) / min(seconds)] if len(seconds) > 1 else []
        relative = ((time.high - time.low) / (2 * time.seconds) for time in rounds)
        widths += [width for width in relative if math.isfinite(width)]
    return RepeatSpread(
        len(ratios),
        statistics.median(ratios) if ratios else math.nan,
        statistics.median(widths) if widths else math.nan,
    )
