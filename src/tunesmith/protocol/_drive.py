"""Searches carried to their end: what they ask for is measured, all of a round together, and they are told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from tunesmith.records import Configuration, Estimate, Problem
from tunesmith.search import Batch, Mode, Search

from ._measure import Cell, Measure, Table

Identity = Callable[[Configuration], Hashable]


@dataclass
class Searched:
    """A search, the problems that it is for, and what was measured for it.

    `table` has the first times and the finalists' paired samples, `finals` the finalists' times in these samples.
    """

    search: Search
    problems: Sequence[Problem]
    table: Table = Table()
    finals: dict[Cell, Estimate] = field(default_factory=dict)

    def tell(self, batch: Batch, measured: Table) -> None:
        if batch.mode is Mode.CONFIRMED:
            self.finals.update(measured.cells)
            self.table |= Table(paired=measured.paired)
        else:
            self.table |= measured
        rows: dict[Configuration, dict[Problem, Estimate]] = {config: {} for config in batch.configurations}
        for (config, problem), estimate in measured.cells.items():
            rows[config][problem] = estimate
        self.search.tell(batch, rows)


def carry_out(searches: Sequence[Searched], measure: Measure, identity: Identity = lambda config: config) -> int:
    """Ask, measure, tell, until no search asks for anything; returns how many distinct cells were screened.

    What all searches ask for in a round goes into one call of `measure.screen_cells`, each search being a group. What
    is the same solution is screened once, under the configuration that was asked for first. Whatever `measure` raises
    ends it.
    """
    stands: dict[Hashable, Configuration] = {}
    known: dict[Mode, dict[Cell, Estimate | None]] = {Mode.RACED: {}, Mode.FULL: {}}
    while asks := [(searched, batch) for searched in searches if (batch := searched.search.ask())]:
        wanted = [_cells(batch, searched.problems, stands, identity) for searched, batch in asks]
        for mode, times in known.items():
            groups = [
                [cell for cell in dict.fromkeys(cells.values()) if cell not in times]
                for (_, batch), cells in zip(asks, wanted, strict=True)
                if batch.mode is mode
            ]
            if any(groups):
                measured = measure.screen_cells([group for group in groups if group], mode is Mode.RACED).cells
                times.update({cell: measured.get(cell) for group in groups for cell in group})
        for (searched, batch), cells in zip(asks, wanted, strict=True):
            if batch.mode is Mode.CONFIRMED:
                table = measure.confirm(batch.configurations, batch.problems or searched.problems)
            else:
                times = known[batch.mode]
                table = Table({cell: estimate for cell, stand in cells.items() if (estimate := times[stand])})
            searched.tell(batch, table)
    return sum(map(len, known.values()))


def _cells(
    batch: Batch, problems: Sequence[Problem], stands: dict[Hashable, Configuration], identity: Identity
) -> dict[Cell, Cell]:
    """A batch's cells, each with the one that is measured for it."""
    first = {config: stands.setdefault(identity(config), config) for config in batch.configurations}
    return {(config, p): (stand, p) for config, stand in first.items() for p in batch.problems or problems}
