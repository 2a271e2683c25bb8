"""In which order the cells of a step are measured: what is expected to be fast comes first.

So the best guesses are measured already when a budget ends or somebody stops the run, and races have a strong rival
early. Which cells are measured does not depend on the order, and neither does what the store answers for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from tunesmith.protocol import Cell
from tunesmith.records import Configuration, Problem

from .oracle import ConfigurationOracle

Rank = Callable[[Cell], float]
"""What is lower is measured earlier; equals keep their order."""


@dataclass(frozen=True)
class CellRace:
    """Cells that compete, and what they have to beat: seconds by problem."""

    cells: tuple[Cell, ...]
    rivals: Mapping[Problem, float] = field(default_factory=dict)


def in_order(races: Sequence[CellRace], oracle: ConfigurationOracle, rank: Rank | None) -> list[CellRace]:
    """The races, and the cells of each, by rank; without ranks as a device alone wants them.

    On a device of its own, the bench takes cells problem by problem: problems keep the order in which the families
    guess their fastest cells, and cells of equal rank are ordered by their guess. On the host's CPU, where compiling
    takes turns with timing, one configuration comes after the other, by the mean of its ranks.
    """
    if oracle.target.shares_the_host:
        if rank is None:
            return list(races)
        ranked = [_by_configuration(race.cells, rank) for race in races]
    else:
        ranked = [_by_problem(race.cells, oracle, rank) for race in races]
    order = sorted(range(len(races)), key=lambda number: ranked[number][0] if rank else 0.0)
    return [replace(races[number], cells=ranked[number][1]) for number in order]


def _by_configuration(cells: Sequence[Cell], rank: Rank) -> tuple[float, tuple[Cell, ...]]:
    """The lowest mean rank of a configuration, and the cells by that mean: a configuration may have fewer cells than
    others, where it is legal at fewer sizes or the rest was measured before."""
    ranks: dict[Configuration, list[float]] = defaultdict(list)
    for cell in cells:
        ranks[cell[0]].append(rank(cell))
    means = {config: fmean(its) for config, its in ranks.items()}
    return min(means.values(), default=math.inf), tuple(sorted(cells, key=lambda cell: means[cell[0]]))


def _by_problem(
    cells: Sequence[Cell], oracle: ConfigurationOracle, rank: Rank | None
) -> tuple[float, tuple[Cell, ...]]:
    """The lowest rank, and the cells by problem, rank and guess."""
    guessed = sorted(cells, key=lambda cell: oracle.guess(*cell))
    if rank is None:
        return 0.0, tuple(guessed)
    ranks = {cell: rank(cell) for cell in guessed}
    problems = {problem: number for number, problem in enumerate(dict.fromkeys(problem for _, problem in guessed))}
    made = sorted(guessed, key=lambda cell: (problems[cell[1]], ranks[cell]))
    return min(ranks.values(), default=math.inf), tuple(made)
