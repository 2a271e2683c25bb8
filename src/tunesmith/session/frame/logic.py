"""Library logic from what a run decided, beside what the folder's logic knew before."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.kernels import KERNELS
from tunesmith.logic import Document, FinalTable, Origin, TableCell, write_logic
from tunesmith.logic.build import build, merge
from tunesmith.models.stream_k.open import with_a_grid
from tunesmith.problems import OPERATIONS
from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem, ProblemType, Solution
from tunesmith.store import FULL, RECHECK, in_rounds
from tunesmith.toolchains import TOOLCHAINS

from .earlier import EarlierLogic, Where, keep_aside
from .outputs import LOGIC, Output
from .run import Run


@dataclass(frozen=True)
class LogicOutput(Output):
    """A logic file; `names` has the solutions of all tables that it was made from, by the names that it gives them."""

    names: Mapping[Solution, str] = field(default_factory=dict)


def logic_output(
    run: Run,
    name: str,
    kind: ProblemType,
    decided: Mapping[Problem, tuple[Solution, ...]],
    tables: Sequence[FinalTable] = (),
    left_out: Collection[str] = (),
) -> LogicOutput:
    """The logic file `name` of a type, with what this run decided: by size the winner, then what could not be told from
    it. Other sizes keep what stands in the file.

    Times come from `tables`, else from all that the store has of the type, without the kernels in `left_out`. A file
    that cannot be added to is kept under another name, and the run says so.
    """
    target, path = run.outcome.target, Path(LOGIC) / name
    earlier = EarlierLogic.read(run.outcome.folder / path, kind, target)
    before, scalars = earlier.rows, next(iter(decided)).scalars
    solutions = {solution for table in tables for solution in table.solutions}
    solutions = solutions or {winner for winner, *_ in decided.values()}
    ours = {(problem.sizes, problem.leading): chosen for problem, chosen in decided.items()}
    run.notes[path] = _added(path, run.found.setdefault(path, before), ours)
    kept = {where: known for where, known in before.items() if where not in ours}
    if kept or not tables:
        table = measured(run, kind, left_out)
        stored = {(p.sizes, p.leading) for p in table.problems if any(table.time(p, s) for s in table.solutions)}
        lost = _remembered(earlier.document, kept.keys() - stored, scalars) if earlier.document else table
        others = {p: kept[where] for t in (table, lost) for p in t.problems if (where := (p.sizes, p.leading)) in kept}
        decided, tables = {**others, **decided}, [*tables, _beside(table, tables), lost]
    languages = {KERNELS[solution.kernel].language for solution in solutions}
    toolchains = "; ".join(sorted(TOOLCHAINS[language].version(target) for language in languages))
    origin = Origin.of(target, toolchains, tunesmith.__version__, time.strftime("%Y-%m-%dT%H:%M:%S%z"))

    def runs_anywhere(solution: Solution) -> bool:
        tiny = Problem(kind, (1,) * len(kind.indices), scalars=scalars)
        return not any(KERNELS[solution.kernel].rejections_for(with_a_grid(solution.configuration), tiny, target))

    tables = [replace(table, decided={p: d for p, d in decided.items() if p in table.problems}) for table in tables]
    made = build(tables, origin, general=runs_anywhere, unfinished=run.plan.unfinished)
    every = merge(tables)
    names = dict(zip(every.solutions, every.names, strict=True))
    return LogicOutput(path, partial(_write, run, made.document, earlier), is_logic=True, names=names)


def measured(run: Run, kind: ProblemType, left_out: Collection[str] = ()) -> FinalTable:
    """Everything that the store has of a type on the run's device: each cell's newest full measurement, with the
    samples of all its further rounds."""
    rounds: dict[tuple[Problem, Solution], dict[str, Measurement]] = defaultdict(dict)
    for entry in run.store.entries(problem_type=kind.name, round_prefix=FULL):
        counts = entry.problem.type == kind and entry.target.same_device(run.outcome.target)
        if counts and entry.solution.kernel not in left_out:
            rounds[entry.problem, entry.solution][entry.round.removesuffix(RECHECK)] = entry.measurement
    cells = {where: TableCell.of(in_rounds(taken[FULL], taken)) for where, taken in rounds.items() if FULL in taken}
    problems = tuple(dict.fromkeys(problem for problem, _ in cells))
    solutions = tuple(dict.fromkeys(solution for _, solution in cells))
    return FinalTable(kind, problems, tuple(map(OPERATIONS[kind.operation].work, problems)), solutions, cells)


def _remembered(document: Document, among: Collection[Where], scalars: Configuration) -> FinalTable:
    """The times that a logic has of some sizes, for where the store does not have them (it was moved, or removed)."""
    kind, cells = document.problem_type, dict[tuple[Problem, Solution], TableCell]()
    for row in document.rows:
        if (row.sizes, row.leading) in among:
            problem = Problem(kind, row.sizes, row.leading, scalars)
            cells[problem, document.solutions[row.solution].solution] = TableCell(Outcome.OK, estimate=row.estimate)
            for index, seconds in row.others:
                known = Estimate(seconds, math.nan, math.nan, 0)
                cells[problem, document.solutions[index].solution] = TableCell(Outcome.OK, estimate=known)
    problems = tuple(dict.fromkeys(problem for problem, _ in cells))
    solutions = tuple(dict.fromkeys(solution for _, solution in cells))
    return FinalTable(kind, problems, tuple(map(OPERATIONS[kind.operation].work, problems)), solutions, cells)


def _beside(table: FinalTable, tables: Sequence[FinalTable]) -> FinalTable:
    """A table without what others say already, perhaps by other samples."""
    said = {where for other in tables for where in other.cells}
    return replace(table, cells={where: cell for where, cell in table.cells.items() if where not in said})


def _write(run: Run, document: Document, earlier: EarlierLogic, path: Path) -> None:
    """Write the logic; what lies there and could not be added to stays under another name."""
    if earlier.trouble and path.exists():
        tell = run.complain if earlier.damaged else run.say
        tell(f"{path} {earlier.trouble}; it is kept as {keep_aside(path).name}, and nothing of it is in the new one")
    write_logic(document, path)


def _added(
    path: Path, first: Mapping[Where, tuple[Solution, ...]], decided: Mapping[Where, tuple[Solution, ...]]
) -> str:
    """What became of the sizes that the file had when the run began; empty where there is nothing to say."""
    stay = len(first.keys() - decided.keys())
    other = [where for where, (winner, *_) in decided.items() if where in first and first[where][0] != winner]
    parts = [f"{stay} sizes of earlier runs stay"] if stay else []
    if other:
        sizes = ", ".join("x".join(map(str, sizes + leading)) for sizes, leading in other[:5])
        parts.append(f"{len(other)} have another solution now ({sizes}{', ...' if len(other) > 5 else ''})")
    return f"{path}: {'; '.join(parts)}" if parts else ""
