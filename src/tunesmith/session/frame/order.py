"""The order in which a step's cells are measured: those expected to be fast come first.

The best guesses are then measured before a budget ends or somebody stops the run, and races have a strong rival early.
The order changes neither which cells are measured nor which of them the store answers for.
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
"""Cells of a lower rank are measured earlier; cells of equal rank keep their order."""


@dataclass(frozen=True)
class CellRace:
    """Cells that compete, and the times that they have to beat: seconds by problem."""

    cells: tuple[Cell, ...]
    rivals: Mapping[Problem, float] = field(default_factory=dict)


def in_order(races: Sequence[CellRace], oracle: ConfigurationOracle, rank: Rank | None) -> list[CellRace]:
    """The races, and the cells of each race, sorted by rank.

    On a GPU, cells come problem by problem: problems in the order in which the families guess their fastest cells,
    and a problem's cells by rank, then by guess. On the host's CPU, where compiling takes turns with timing, cells come
    configuration by configuration, by the configuration's mean rank; without a rank, they keep their order.
    """
    if oracle.target.shares_the_host:
        if rank is None:
            return list(races)
        ranked = [_by_configuration(race.cells, rank) for race in races]
    else:
        ranked = [_by_problem(race.cells, oracle, rank) for race in races]
    order = sorted(range(len(races)), key=lambda index: ranked[index][0] if rank else 0.0)
    return [replace(races[index], cells=ranked[index][1]) for index in order]


def _by_configuration(cells: Sequence[Cell], rank: Rank) -> tuple[float, tuple[Cell, ...]]:
    """The lowest mean rank of a configuration, and the cells by their configuration's mean rank. The mean is used since
    configurations differ in their numbers of cells: some are illegal at a size, or measured already."""
    ranks: dict[Configuration, list[float]] = defaultdict(list)
    for cell in cells:
        ranks[cell[0]].append(rank(cell))
    means = {config: fmean(own_ranks) for config, own_ranks in ranks.items()}
    return min(means.values(), default=math.inf), tuple(sorted(cells, key=lambda cell: means[cell[0]]))


def _by_problem(
    cells: Sequence[Cell], oracle: ConfigurationOracle, rank: Rank | None
) -> tuple[float, tuple[Cell, ...]]:
    """The lowest rank, and the cells by problem, rank and guess."""
    guessed = sorted(cells, key=lambda cell: oracle.guess(*cell))
    if rank is None:
        return 0.0, tuple(guessed)
    ranks = {cell: rank(cell) for cell in guessed}
    positions = {problem: index for index, problem in enumerate(dict.fromkeys(problem for _, problem in guessed))}
    ordered = sorted(guessed, key=lambda cell: (positions[cell[1]], ranks[cell]))
    return min(ranks.values(), default=math.inf), tuple(ordered)
