"""Carries searches to their end: measures what all searches ask for in a round, and tells them the times."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from tunesmith.records import Configuration, Estimate, Problem
from tunesmith.search import CandidateBatch, MeasureMode, Search

from .measure import Cell, Measure, TimeTable

Identity = Callable[[Configuration], Hashable]


@dataclass
class SearchRun:
    """A search, its problems, and the finalists' samples once they are measured."""

    search: Search
    problems: Sequence[Problem]
    finals: TimeTable = TimeTable()

    def confirmed(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        """The finalists' samples that were measured already, in the form of `Measure.confirm`."""
        cells = [(config, problem) for config in configs for problem in problems]
        return TimeTable(paired={cell: self.finals.paired[cell] for cell in cells if cell in self.finals.paired})


def carry_out(
    searches: Sequence[SearchRun], measure: Measure, identity: Identity = lambda config: config
) -> tuple[TimeTable, int]:
    """Ask, measure and tell until no search asks for anything.

    The batches of all searches in a round are measured by one call of `measure.screen_cells`, with a group for each
    search. Configurations that are the same solution are screened once, as the configuration that was asked for first.
    An exception of `measure` ends the searches. Returns all first times with the finalists' samples, and the number of
    screened cells.
    """
    representatives: dict[Hashable, Configuration] = {}
    first_times: dict[MeasureMode, dict[Cell, Estimate | None]] = {MeasureMode.RACED: {}, MeasureMode.FULL: {}}
    times_by_cell: dict[Cell, Estimate] = {}
    while asks := [(searched, batch) for searched in searches if (batch := searched.search.ask())]:
        cells_of_asks = [_cells(searched, batch, representatives, identity) for searched, batch in asks]
        for mode, times in first_times.items():
            groups = [
                [cell for cell in dict.fromkeys(cells.values()) if cell not in times]
                for (_, batch), cells in zip(asks, cells_of_asks, strict=True)
                if batch.mode is mode
            ]
            if any(groups):
                measured = measure.screen_cells([group for group in groups if group], mode is MeasureMode.RACED).cells
                times.update({cell: measured.get(cell) for group in groups for cell in group})
        confirmed = [(searched, batch) for searched, batch in asks if batch.mode is MeasureMode.CONFIRMED]
        measure.announce((batch.configurations, batch.problems or own.problems) for own, batch in confirmed)
        for (searched, batch), cells in zip(asks, cells_of_asks, strict=True):
            if batch.mode is MeasureMode.CONFIRMED:
                table = measure.confirm(batch.configurations, batch.problems or searched.problems)
                searched.finals |= table
            else:
                times = first_times[batch.mode]
                table = TimeTable({cell: time for cell, screen in cells.items() if (time := times[screen])})
                times_by_cell.update(table.cells)
            searched.search.tell(batch, table.rows())
    paired = {cell: samples for searched in searches for cell, samples in searched.finals.paired.items()}
    return TimeTable(times_by_cell, paired), sum(map(len, first_times.values()))


def _cells(
    searched: SearchRun, batch: CandidateBatch, representatives: dict[Hashable, Configuration], identity: Identity
) -> dict[Cell, Cell]:
    """A batch's cells, each with the cell that is screened in its place."""
    first = {config: representatives.setdefault(identity(config), config) for config in batch.configurations}
    problems = batch.problems or searched.problems
    return {(config, problem): (screen, problem) for config, screen in first.items() for problem in problems}
