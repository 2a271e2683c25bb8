"""Library logic of a run: the plan's winners, added to the sizes that the folder's logic already has.

Winners come from the plan; nothing is decided here for a size of this run. `logic.build` derives the rest of the logic.
"""

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
from tunesmith.models.stream_k.open_grids import with_arbitrary_grid
from tunesmith.records import (
    Configuration,
    Estimate,
    Measurement,
    Outcome,
    Problem,
    ProblemType,
    Solution,
    Target,
    UserError,
)
from tunesmith.store import FULL, RECHECK, combined_rounds
from tunesmith.toolchains import TOOLCHAINS

from .earlier import EarlierLogic, SizeKey, keep_aside
from .outputs import LOGIC, Output
from .run import Run


@dataclass(frozen=True)
class LogicOutput(Output):
    """A logic file. `names` has the logic's name of every solution in the tables that the logic was made from."""

    names: Mapping[Solution, str] = field(default_factory=dict)


def logic_output(
    run: Run,
    name: str,
    kind: ProblemType,
    decided: Mapping[Problem, tuple[Solution, ...]],
    tables: Sequence[FinalTable] = (),
    left_out: Collection[str] = (),
) -> LogicOutput:
    """The logic file `name` of a type with this run's decisions. Other sizes keep the rows that they have in the file.

    `decided` has for each problem the winner, then the solutions that tied with it. Times come from `tables`, else from
    all that the store has of the type, without the kernels in `left_out`. An existing file that cannot be added to is
    kept under another name, and the run says so.
    """
    target, path = run.outcome.target, Path(LOGIC) / name
    earlier = EarlierLogic.read(run.outcome.folder / path, kind, target)
    before, scalars = earlier.rows, next(iter(decided)).scalars
    solutions = {solution for table in tables for solution in table.solutions}
    solutions = solutions or {winner for winner, *_ in decided.values()}
    ours = {(problem.sizes, problem.leading): chosen for problem, chosen in decided.items()}
    run.notes[path] = _changes(path, run.found.setdefault(path, before), ours)
    kept = {size: chosen for size, chosen in before.items() if size not in ours}
    if kept or not tables:
        table = stored_table(run, kind, left_out)
        stored = {(p.sizes, p.leading) for p in table.problems if any(table.time(p, s) for s in table.solutions)}
        lost = _table_of_logic(earlier.document, kept.keys() - stored, scalars) if earlier.document else table
        others = {p: kept[size] for t in (table, lost) for p in t.problems if (size := (p.sizes, p.leading)) in kept}
        decided, tables = {**others, **decided}, [*tables, _without_cells_of(tables, table), lost]
    languages = {KERNELS[solution.kernel].language for solution in solutions}
    toolchains = "; ".join(sorted(TOOLCHAINS[language].version(target) for language in languages))
    origin = Origin.of(target, toolchains, tunesmith.__version__, time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    tables = [replace(table, decided={p: d for p, d in decided.items() if p in table.problems}) for table in tables]
    runs_everywhere = partial(runs_anywhere, scalars, target)
    logic = build(tables, origin, general=runs_everywhere, unfinished=run.plan.unfinished)
    merged = merge(tables)
    names = dict(zip(merged.solutions, merged.names, strict=True))
    return LogicOutput(path, partial(_write, run, logic.document, earlier), is_logic=True, names=names)


def runs_anywhere(scalars: Configuration, target: Target, solution: Solution) -> bool:
    """Whether a solution is legal at every size, as far as one can tell: at sizes of one."""
    kind = solution.type
    tiny = Problem(kind, (1,) * len(kind.indices), scalars=scalars)
    family, config = KERNELS[solution.kernel], with_arbitrary_grid(solution.configuration)
    try:
        return not any(family.rejections_for(config, tiny, target))
    except UserError:  # an expression of a user's own kernel need not have a value at such sizes
        return False


def stored_table(run: Run, kind: ProblemType, left_out: Collection[str] = ()) -> FinalTable:
    """All that the store has of a type on the run's device (`Target.same_device`): each cell's newest full measurement,
    with the samples of all its further rounds."""
    rounds: dict[tuple[Problem, Solution], dict[str, Measurement]] = defaultdict(dict)
    for entry in run.store.entries(problem_type=kind.name, round_prefix=FULL):
        is_of_table = entry.problem.type == kind and entry.target.same_device(run.outcome.target)
        if is_of_table and entry.solution.kernel not in left_out:
            rounds[entry.problem, entry.solution][entry.round.removesuffix(RECHECK)] = entry.measurement
    cells = {
        cell: TableCell.of(combined_rounds(stored[FULL], stored)) for cell, stored in rounds.items() if FULL in stored
    }
    return FinalTable.of_cells(kind, cells)


def _table_of_logic(document: Document, sizes: Collection[SizeKey], scalars: Configuration) -> FinalTable:
    """The times in a logic of sizes that the store no longer has (it was moved, or removed)."""
    kind, cells = document.problem_type, dict[tuple[Problem, Solution], TableCell]()
    for row in document.rows:
        if (row.sizes, row.leading) in sizes:
            problem = Problem(kind, row.sizes, row.leading, scalars)
            cells[problem, document.solutions[row.solution].solution] = TableCell(Outcome.OK, estimate=row.estimate)
            for index, seconds in row.others.items():
                estimate = Estimate(seconds, math.nan, math.nan, 0)
                cells[problem, document.solutions[index].solution] = TableCell(Outcome.OK, estimate=estimate)
    return FinalTable.of_cells(kind, cells)


def _without_cells_of(tables: Sequence[FinalTable], table: FinalTable) -> FinalTable:
    """`table` without the cells that `tables` have, which may rest on other samples."""
    covered = {key for other in tables for key in other.cells}
    return replace(table, cells={key: cell for key, cell in table.cells.items() if key not in covered})


def _write(run: Run, document: Document, earlier: EarlierLogic, path: Path) -> None:
    """Write the logic. A file at `path` that could not be added to is kept under another name."""
    if earlier.trouble and path.exists():
        tell = run.complain if earlier.damaged else run.say
        tell(f"{path} {earlier.trouble}; it is kept as {keep_aside(path).name}, and nothing of it is in the new one")
    write_logic(document, path)


def _changes(
    path: Path, at_begin: Mapping[SizeKey, tuple[Solution, ...]], decided: Mapping[SizeKey, tuple[Solution, ...]]
) -> str:
    """A sentence on the sizes that the file had when the run began: which stay, and which have another winner now.
    Empty if there are none."""
    stay = len(at_begin.keys() - decided.keys())
    changed = [size for size, (winner, *_) in decided.items() if size in at_begin and at_begin[size][0] != winner]
    parts = [f"{stay} sizes of earlier runs stay"] if stay else []
    if changed:
        sizes = ", ".join("x".join(map(str, sizes + leading)) for sizes, leading in changed[:5])
        parts.append(f"{len(changed)} have another solution now ({sizes}{', ...' if len(changed) > 5 else ''})")
    return f"{path}: {'; '.join(parts)}" if parts else ""
