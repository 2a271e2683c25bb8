"""Library logic from what a run decided, beside what the folder's logic knew before."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.kernels import KERNELS
from tunesmith.logic import Cell, Document, FinalTable, Logic, Origin, write_logic
from tunesmith.logic.build import build
from tunesmith.models.stream_k_open import with_a_grid
from tunesmith.problems import OPERATIONS
from tunesmith.records import Measurement, Problem, ProblemType, Solution, Target
from tunesmith.store import FULL, RECHECK, in_rounds
from tunesmith.toolchains import TOOLCHAINS

from .outputs import LOGIC, Output
from .run import Run


def logic_output(
    run: Run,
    name: str,
    kind: ProblemType,
    decided: Mapping[Problem, tuple[Solution, ...]],
    tables: Sequence[FinalTable] = (),
    left_out: Collection[str] = (),
) -> Output:
    """The logic file `name` of a type, with what this run decided: by size the winner, then what could not be told from
    it. Other sizes keep what stands in the file.

    Times come from `tables`, else from all that the store has of the type, without the kernels in `left_out`.
    """
    target, path = run.outcome.target, Path(LOGIC) / name
    before = _before(run.outcome.folder / path, kind, target)
    solutions = {solution for table in tables for solution in table.solutions}
    solutions = solutions or {winner for winner, *_ in decided.values()}
    ours = {(problem.sizes, problem.leading) for problem in decided}
    kept = {where: known for where, known in before.items() if where not in ours}
    if kept or not tables:
        table = measured(run, kind, left_out)
        others = {p: kept[p.sizes, p.leading] for p in table.problems if (p.sizes, p.leading) in kept}
        decided, tables = {**others, **decided}, [*tables, _beside(table, tables)]
    languages = {KERNELS[solution.kernel].language for solution in solutions}
    toolchains = "; ".join(sorted(TOOLCHAINS[language].version(target) for language in languages))
    origin = Origin.of(target, toolchains, tunesmith.__version__, time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    scalars = next(iter(decided)).scalars

    def runs_anywhere(solution: Solution) -> bool:
        tiny = Problem(kind, (1,) * len(kind.indices), scalars=scalars)
        return not any(KERNELS[solution.kernel].rejections_for(with_a_grid(solution.configuration), tiny, target))

    tables = [replace(table, decided={p: d for p, d in decided.items() if p in table.problems}) for table in tables]
    made = build(tables, origin, general=runs_anywhere, unfinished=run.plan.unfinished)
    return Output(path, partial(write_logic, made.document), is_logic=True)


def measured(run: Run, kind: ProblemType, left_out: Collection[str] = ()) -> FinalTable:
    """Everything that the store has of a type on the run's device: each cell's newest full measurement, with the
    samples of all its further rounds."""
    rounds: dict[tuple[Problem, Solution], dict[str, Measurement]] = defaultdict(dict)
    for entry in run.store.entries(problem_type=kind.name, round_prefix=FULL):
        counts = entry.problem.type == kind and entry.target.same_device(run.outcome.target)
        if counts and entry.solution.kernel not in left_out:
            rounds[entry.problem, entry.solution][entry.round.removesuffix(RECHECK)] = entry.measurement
    cells = {where: Cell.of(in_rounds(taken[FULL], taken)) for where, taken in rounds.items() if FULL in taken}
    problems = tuple(dict.fromkeys(problem for problem, _ in cells))
    solutions = tuple(dict.fromkeys(solution for _, solution in cells))
    return FinalTable(kind, problems, tuple(map(OPERATIONS[kind.operation].work, problems)), solutions, cells)


Where = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and leading dimensions."""


def rows_of(document: Document) -> dict[Where, tuple[Solution, ...]]:
    """The solution of each size, then what could not be told from it."""
    return {
        (row.sizes, row.leading): tuple(document.solutions[place].solution for place in (row.solution, *row.ties))
        for row in document.rows
    }


def is_for(document: Document, target: Target, kind: ProblemType | None = None) -> bool:
    """Whether a logic was made on a device, and for a type."""
    made_there = (document.origin.api, document.origin.device) == (target.api, target.name)
    return made_there and kind in (None, document.problem_type)


def _beside(table: FinalTable, tables: Sequence[FinalTable]) -> FinalTable:
    """A table without what others say already, perhaps by other samples."""
    said = {where for other in tables for where in other.cells}
    return replace(table, cells={where: cell for where, cell in table.cells.items() if where not in said})


def _before(path: Path, kind: ProblemType, target: Target) -> dict[Where, tuple[Solution, ...]]:
    document = Logic.load(path).document if path.is_file() else None
    return rows_of(document) if document and is_for(document, target, kind) else {}
