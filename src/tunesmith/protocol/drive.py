"""Searches carried to their end: what they ask for is measured, all of a round together, and they are told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from tunesmith.records import Configuration, Estimate, Problem
from tunesmith.search import CandidateBatch, MeasureMode, Search

from .measure import Cell, Measure, TimeTable

Identity = Callable[[Configuration], Hashable]


@dataclass
class Searched:
    """A search, the problems that it is for, and what was measured of its finalists, in the end."""

    search: Search
    problems: Sequence[Problem]
    finals: TimeTable = TimeTable()

    def confirmed(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        """The finalists' samples, found again: answers for `Measure.confirm`."""
        cells = [(config, problem) for config in configs for problem in problems]
        return TimeTable(paired={cell: self.finals.paired[cell] for cell in cells if cell in self.finals.paired})


def carry_out(
    searches: Sequence[Searched], measure: Measure, identity: Identity = lambda config: config
) -> tuple[TimeTable, int]:
    """Ask, measure, tell, until no search asks for anything.

    What all searches ask for in a round goes into one call of `measure.screen_cells`, each search being a group. What
    is the same solution is screened once, under the configuration that was asked for first. Whatever `measure` raises
    ends it. Returns the first times of everything, with the finalists' samples, and how many cells were screened.
    """
    stands: dict[Hashable, Configuration] = {}
    known: dict[MeasureMode, dict[Cell, Estimate | None]] = {MeasureMode.RACED: {}, MeasureMode.FULL: {}}
    whole: dict[Cell, Estimate] = {}
    while asks := [(searched, batch) for searched in searches if (batch := searched.search.ask())]:
        wanted = [_cells(searched, batch, stands, identity) for searched, batch in asks]
        for mode, times in known.items():
            groups = [
                [cell for cell in dict.fromkeys(cells.values()) if cell not in times]
                for (_, batch), cells in zip(asks, wanted, strict=True)
                if batch.mode is mode
            ]
            if any(groups):
                measured = measure.screen_cells([group for group in groups if group], mode is MeasureMode.RACED).cells
                times.update({cell: measured.get(cell) for group in groups for cell in group})
        for (searched, batch), cells in zip(asks, wanted, strict=True):
            if batch.mode is MeasureMode.CONFIRMED:
                table = measure.confirm(batch.configurations, batch.problems or searched.problems)
                searched.finals |= table
            else:
                times = known[batch.mode]
                table = TimeTable({cell: time for cell, stand in cells.items() if (time := times[stand])})
                whole.update(table.cells)
            searched.search.tell(batch, table.rows())
    paired = {cell: samples for searched in searches for cell, samples in searched.finals.paired.items()}
    return TimeTable(whole, paired), sum(map(len, known.values()))


def _cells(
    searched: Searched, batch: CandidateBatch, stands: dict[Hashable, Configuration], identity: Identity
) -> dict[Cell, Cell]:
    """A batch's cells, each with the one that is screened for it."""
    first = {config: stands.setdefault(identity(config), config) for config in batch.configurations}
    problems = batch.problems or searched.problems
    return {(config, problem): (stand, problem) for config, stand in first.items() for problem in problems}
