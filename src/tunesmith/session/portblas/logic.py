"""What a tuning leaves for programs: library logic for each problem type, and a C++ header for portBLAS."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tunesmith
from tunesmith.formats.portblas_backend import Size, header
from tunesmith.formats.portblas_results import combination_of
from tunesmith.kernels import KERNELS
from tunesmith.logic import Cell, FinalTable, Logic, Origin, logic_files, write_atomically, write_logic
from tunesmith.logic.build import build
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import Gemm, is_interleaved
from tunesmith.records import Problem, ProblemType, Solution, Target, architecture_name
from tunesmith.session.tune.tuning import LOGIC
from tunesmith.store import FULL, RECHECK, Store
from tunesmith.toolchains import TOOLCHAINS

from .rows import Tuned

HEADER = "portblas_backend.hpp"
RESULTS = "results"
VENDOR = "VendorBlas"


@dataclass(frozen=True, slots=True)
class Written:
    """Paths of what was written."""

    logic: tuple[Path, ...] = ()
    results: tuple[Path, ...] = ()
    header: Path | None = None


def write(tuned: Sequence[Tuned], target: Target, folder: Path, store: Store, vendor: bool) -> Written:
    """Logic of every type that something ran of, with all its sizes that the store knows; the header from all logic of
    this device in the folder; the results as the original prints them. The system BLAS is in a logic only if `vendor`.
    """
    tables = _Tables(store, target, vendor)
    logic = tuple(_write_logic(one, target, folder, tables) for one in tuned if one.winner)
    results = tuple(_write_results(one, target, folder) for one in tuned)
    sizes = [size for one in _logics(folder, target) for size in _sizes(one, tables)]
    path = folder / HEADER if sizes else None
    if path:
        write_atomically(path, header(sizes, target.name, tunesmith.__version__))
    return Written(logic, results, path)


class _Tables:
    """Everything that was measured on a device, by problem type; each cell's newest measurement counts."""

    def __init__(self, store: Store, target: Target, vendor: bool) -> None:
        self._store, self._target, self._vendor = store, target, vendor

    def of(self, kind: ProblemType) -> FinalTable:
        cells: dict[tuple[Problem, Solution], Cell] = {}
        for entry in self._store.entries(problem_type=kind.name, round_prefix=FULL):
            ours = entry.target == self._target and entry.round in (FULL, FULL + RECHECK)
            if ours and entry.problem.type == kind and (self._vendor or entry.solution.kernel != VENDOR):
                cells[entry.problem, entry.solution] = Cell.of(entry.measurement)
        problems = tuple(dict.fromkeys(problem for problem, _ in cells))
        work = OPERATIONS[kind.operation].work
        solutions = tuple(dict.fromkeys(solution for _, solution in cells))
        return FinalTable(kind, problems, tuple(map(work, problems)), solutions, cells)


def _write_logic(one: Tuned, target: Target, folder: Path, tables: _Tables) -> Path:
    """The winners of other sizes stay what they were."""
    assert one.winner is not None
    kind = one.problem.type
    path = folder / LOGIC / f"{target.api}_{architecture_name(target.architecture)}_{kind.name}.yaml"
    before = _rows_of(Logic.load(path)) if path.is_file() else {}
    table = tables.of(kind)
    winners = {problem: before[problem.sizes] for problem in table.problems if problem.sizes in before}
    winners[one.problem] = one.winner.solution
    languages = {KERNELS[solution.kernel].language for solution in winners.values()}
    toolchains = sorted(TOOLCHAINS[language].version(target) for language in languages)
    date = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    origin = Origin.of(target, "; ".join(toolchains), tunesmith.__version__, date)

    def runs_anywhere(solution: Solution) -> bool:
        tiny = replace(one.problem, sizes=(1,) * len(one.problem.sizes))
        return not any(KERNELS[solution.kernel].rejections_for(solution.configuration, tiny, target))

    write_logic(build([table], origin, winners=winners, general=runs_anywhere).document, path)
    return path


def _rows_of(logic: Logic) -> dict[tuple[int, ...], Solution]:
    document = logic.document
    return {row.sizes: document.solutions[row.solution].solution for row in document.rows if not row.leading}


def _logics(folder: Path, target: Target) -> Iterator[Logic]:
    for path in logic_files(folder / LOGIC) if (folder / LOGIC).is_dir() else ():
        logic = Logic.load(path)
        if (logic.document.origin.api, logic.document.origin.device) == (target.api, target.name):
            yield logic


def _sizes(logic: Logic, tables: _Tables) -> Iterator[Size]:
    """For each size its winner, or the fastest of portBLAS's kernels where another family won."""
    kind, chosen = logic.document.problem_type, _rows_of(logic)
    table = tables.of(kind)
    for problem, flops in table:
        ours = (solution for solution in table.solutions if combination_of(solution.configuration))
        times = {solution: time for solution in ours if (time := table.time(problem, solution))}
        if problem.sizes not in chosen or not times:
            continue
        solution = chosen[problem.sizes]
        best = solution if solution in times else min(times, key=lambda s: times[s].seconds)
        combination, gemm = combination_of(best.configuration), Gemm.of(problem)
        assert combination is not None
        yield Size(
            data_type=kind.fields.word("DataType"),
            transpose_a=gemm.transpose_a,
            transpose_b=gemm.transpose_b,
            interleaved=is_interleaved(kind),
            m=gemm.m,
            n=gemm.n,
            k=gemm.k,
            batch=gemm.batch,
            combination=combination,
            gflops=flops / times[best].seconds / 1e9,
        )


def _write_results(one: Tuned, target: Target, folder: Path) -> Path:
    path = folder / RESULTS / f"{one.problem.type.name}_{one.problem}.txt"
    write_atomically(path, f"{one.listing(target.name)}\n")
    return path
