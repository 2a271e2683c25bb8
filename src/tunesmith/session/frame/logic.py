"""Library logic from what a run decided, beside what the folder's logic knew before."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.kernels import KERNELS
from tunesmith.logic import Cell, Document, FinalTable, Logic, Origin, write_logic
from tunesmith.logic.build import build
from tunesmith.models.stream_k_open import with_a_grid
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, ProblemType, Solution, Target
from tunesmith.store import FULL, RECHECK
from tunesmith.toolchains import TOOLCHAINS

from .outputs import LOGIC, Output
from .run import Run


def logic_output(
    run: Run,
    name: str,
    kind: ProblemType,
    winners: Mapping[Problem, Solution],
    tables: Sequence[FinalTable] = (),
    left_out: Collection[str] = (),
) -> Output:
    """The logic file `name` of a type, with the winners of this run; other sizes keep those that stand in the file.

    Times come from `tables`, else from all that the store has of the type, without the kernels in `left_out`.
    """
    target, path = run.outcome.target, Path(LOGIC) / name
    before = _before(run.outcome.folder / path, kind, target)
    solutions = {solution for table in tables for solution in table.solutions} or set(winners.values())
    decided = {(problem.sizes, problem.leading) for problem in winners}
    kept = {where: solution for where, solution in before.items() if where not in decided}
    if kept or not tables:
        table = measured(run, kind, left_out)
        others = {p: kept[p.sizes, p.leading] for p in table.problems if (p.sizes, p.leading) in kept}
        winners, tables = {**others, **winners}, [*tables, table]
    languages = {KERNELS[solution.kernel].language for solution in solutions}
    toolchains = "; ".join(sorted(TOOLCHAINS[language].version(target) for language in languages))
    origin = Origin.of(target, toolchains, tunesmith.__version__, time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    scalars = next(iter(winners)).scalars

    def runs_anywhere(solution: Solution) -> bool:
        tiny = Problem(kind, (1,) * len(kind.indices), scalars=scalars)
        return not any(KERNELS[solution.kernel].rejections_for(with_a_grid(solution.configuration), tiny, target))

    made = build(tables, origin, winners=winners, general=runs_anywhere, unfinished=run.plan.unfinished)
    return Output(path, partial(write_logic, made.document), is_logic=True)


def measured(run: Run, kind: ProblemType, left_out: Collection[str] = ()) -> FinalTable:
    """Everything that the store has of a type on the run's device, each cell's newest full measurement."""
    cells: dict[tuple[Problem, Solution], Cell] = {}
    for entry in run.store.entries(problem_type=kind.name, round_prefix=FULL):
        counts = entry.round in (FULL, FULL + RECHECK) and entry.target.same_device(run.outcome.target)
        if counts and entry.problem.type == kind and entry.solution.kernel not in left_out:
            cells[entry.problem, entry.solution] = Cell.of(entry.measurement)
    problems = tuple(dict.fromkeys(problem for problem, _ in cells))
    solutions = tuple(dict.fromkeys(solution for _, solution in cells))
    return FinalTable(kind, problems, tuple(map(OPERATIONS[kind.operation].work, problems)), solutions, cells)


Where = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and leading dimensions."""


def rows_of(document: Document) -> dict[Where, Solution]:
    """The solution of each size."""
    return {(row.sizes, row.leading): document.solutions[row.solution].solution for row in document.rows}


def is_for(document: Document, target: Target, kind: ProblemType | None = None) -> bool:
    """Whether a logic was made on a device, and for a type."""
    made_there = (document.origin.api, document.origin.device) == (target.api, target.name)
    return made_there and kind in (None, document.problem_type)


def _before(path: Path, kind: ProblemType, target: Target) -> dict[Where, Solution]:
    document = Logic.load(path).document if path.is_file() else None
    return rows_of(document) if document and is_for(document, target, kind) else {}
