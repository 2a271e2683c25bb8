"""Makes a library logic from tables of times: each size's solution, the fallback, and how good the choices are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Estimate, Problem, Solution

from .cover import cover
from .document import Document, NamedSolution, Origin, Regret, SizeRow
from .neighbours import Neighbours
from .select import Logic
from .table import FinalTable, TableCell, rate

DIGITS = 6
"""Significant digits of the numbers in a logic: far finer than any measurement's uncertainty."""


def build(
    tables: Sequence[FinalTable],
    origin: Origin,
    *,
    tolerance: float = 0.0,
    general: Callable[[Solution], bool] = lambda solution: True,
    unfinished: str = "",
) -> Logic:
    """The logic of one problem type, from the tables of its size groups.

    Each size's solution is the winner that the table names (the protocol's winner, which knows ties), else the fastest.
    With a `tolerance`, solutions are left out as long as every size keeps one within `1 + tolerance` of its best time.
    Solutions keep the names that they have in the merged table. `general` tells whether a solution is legal at every
    size, which the fallback should be. Sizes at which nothing ran are left out. `unfinished` is the document's. Raises
    ValueError if nothing ran at all, or for tables of several problem types.
    """
    table = merge(tables)
    ran = [problem for problem in table.problems if any(table.time(problem, s) for s in table.solutions)]
    if not ran:
        raise ValueError("nothing ran at any size")
    picks = _picks(table, ran, tolerance)
    fallback = _fallback(table, ran, general)
    kept = [solution for solution in table.solutions if solution == fallback or solution in picks.values()]
    names = dict(zip(table.solutions, table.names, strict=True))
    indices = {solution: number for number, solution in enumerate(kept)}
    # A logic knows sizes, not scalars: among problems that differ only in alpha or beta, the first is used.
    used = set({(problem.sizes, problem.leading): problem for problem in reversed(picks)}.values())
    rows = tuple(_row(table, problem, work, picks[problem], indices) for problem, work in table if problem in used)
    solutions = tuple(NamedSolution(names[solution], solution) for solution in kept)
    document = Document(origin, table.problem_type, solutions, rows, indices[fallback], unfinished=unfinished)
    return Logic(replace(document, regret=leave_one_out(document, table)))


def merge(tables: Sequence[FinalTable]) -> FinalTable:
    """One table of all sizes and solutions. Equal solutions are one column.

    If several tables have a time for the same cell, the time with the most samples is kept, and the first of those with
    as many: to keep the fastest would be to keep the luckiest. A time is kept rather than a reason. Raises ValueError
    for tables of different types.
    """
    if len({table.problem_type for table in tables}) != 1:
        raise ValueError("only tables of one problem type can be merged")
    work = {problem: amount for table in tables for problem, amount in table}
    cells: dict[tuple[Problem, Solution], TableCell] = {}
    for table in tables:
        for key, cell in table.cells.items():
            if key not in cells or _weight(cell) > _weight(cells[key]):
                cells[key] = cell
    return FinalTable(
        problem_type=tables[0].problem_type,
        problems=tuple(work),
        work=tuple(work.values()),
        solutions=tuple(dict.fromkeys(solution for table in tables for solution in table.solutions)),
        cells=cells,
        decided={problem: decided for table in reversed(tables) for problem, decided in table.decided.items()},
    )


def leave_one_out(document: Document, table: FinalTable) -> Regret | None:
    """The regret at each size of a document, had only that size not been measured; None for fewer than two sizes."""
    if len(document.rows) < 2:
        return None
    problems = {(problem.sizes, problem.leading): problem for problem in table.problems}
    neighbours = Neighbours(document)
    sizes: list[tuple[tuple[int, ...], float]] = []
    for index, row in enumerate(document.rows):
        problem = problems[row.sizes, row.leading]
        best = min(time.seconds for s in table.solutions if (time := table.time(problem, s)))
        ranked = (*(solution for solution, _, _ in neighbours.of(row.sizes, without=index)), document.fallback)
        times = (table.time(problem, document.solutions[solution].solution) for solution in ranked)
        chosen = next((time.seconds for time in times if time), math.inf)
        sizes.append((row.where, _short(chosen / best)))
    worst_at, worst = max(sizes, key=lambda pair: pair[1])
    geomean = math.exp(math.fsum(math.log(regret) for _, regret in sizes) / len(sizes))
    return Regret(_short(geomean), worst, worst_at, tuple(sizes))


def _picks(table: FinalTable, ran: Sequence[Problem], tolerance: float) -> dict[Problem, Solution]:
    times = _seconds(table, ran)
    fastest = {problem: table.solutions[index] for problem, index in zip(ran, times.argmin(axis=1), strict=True)}
    picks = {problem: next(iter(table.decided.get(problem, ())), fastest[problem]) for problem in ran}
    picks = {problem: s if table.time(problem, s) else fastest[problem] for problem, s in picks.items()}
    if not tolerance:
        return picks
    columns = cover(times, tolerance)
    kept = [table.solutions[column] for column in columns]
    fastest_kept = {p: kept[index] for p, index in zip(ran, times[:, columns].argmin(axis=1), strict=True)}
    return {problem: pick if pick in kept else fastest_kept[problem] for problem, pick in picks.items()}


def _fallback(table: FinalTable, ran: Sequence[Problem], general: Callable[[Solution], bool]) -> Solution:
    """The solution for sizes where no other is legal: preferably legal everywhere, then run at the most sizes, then of
    the best geometric mean of speed."""
    times = _seconds(table, ran)
    runs = np.isfinite(times)
    losses = np.log(times / times.min(axis=1, keepdims=True)).sum(axis=0, where=runs)

    def merit(index: int) -> tuple[bool, int, float]:
        count = int(runs[:, index].sum())
        return general(table.solutions[index]) and count > 0, count, -float(losses[index])

    return table.solutions[max(range(len(table.solutions)), key=merit)]


def _seconds(table: FinalTable, problems: Sequence[Problem]) -> NDArray[np.float64]:
    """Median times, a row for each problem and a column for each solution; infinite where the solution did not run."""
    times = [[table.time(problem, solution) for solution in table.solutions] for problem in problems]
    return np.array([[time.seconds if time else math.inf for time in row] for row in times])


def _row(
    table: FinalTable, problem: Problem, work: float, solution: Solution, indices: Mapping[Solution, int]
) -> SizeRow:
    time = table.time(problem, solution)
    assert time is not None, "only what ran is picked"
    rounded = Estimate(_short(time.seconds), _short(time.low), _short(time.high), time.count)
    times = {number: table.time(problem, other) for other, number in indices.items() if other != solution}
    others = {number: _short(other.seconds) for number, other in times.items() if other}
    decided = table.decided.get(problem, ())
    tied = (indices[other] for other in decided if other in indices and table.time(problem, other))
    ties = tuple(sorted(number for number in tied if number != indices[solution]))
    speed = _short(rate(work, time) or 0.0)
    return SizeRow(problem.sizes, problem.leading, indices[solution], rounded, speed, others, ties)


def _weight(cell: TableCell) -> tuple[int, ...]:
    """The number of samples; nothing, which is less than any number, for a cell without a time."""
    return (cell.time.count,) if cell.time else ()


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
