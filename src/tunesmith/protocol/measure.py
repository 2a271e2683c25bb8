"""What the protocol asks of whoever measures, and what it gets back. The session provides one, tests another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tunesmith.records import Configuration, Estimate, Problem

Cell = tuple[Configuration, Problem]


@dataclass(frozen=True)
class TimeTable:
    """Times in seconds by (configuration, problem). A cell that did not run is absent.

    `paired` holds, for the finalists, samples aligned by block: element i of each was taken next to element i of the
    others, so that log ratios can be formed pair by pair.
    """

    cells: Mapping[Cell, Estimate] = field(default_factory=dict)
    paired: Mapping[Cell, tuple[float, ...]] = field(default_factory=dict)

    def rows(self) -> dict[Configuration, dict[Problem, Estimate]]:
        """The times by configuration, of those that ran anywhere."""
        rows: dict[Configuration, dict[Problem, Estimate]] = {}
        for (config, problem), estimate in self.cells.items():
            rows.setdefault(config, {})[problem] = estimate
        return rows

    def __or__(self, other: TimeTable) -> TimeTable:
        """Both; where they differ, the other."""
        return TimeTable({**self.cells, **other.cells}, {**self.paired, **other.paired})


class Measure(Protocol):
    """Measure configurations of one problem type. Both calls may answer from what was measured before."""

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> TimeTable:
        """Every cell of every group, once.

        The cells of a group compete with each other and with nobody else: with `racing`, a cell that is provably
        slower than another of its group on the same problem may be stopped early (it still has a time). A cell in
        several groups is measured once, and stopped only where it is slower in each of them.
        """
        ...

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        """The finalists again, interleaved: `paired` is filled for every cell that ran."""
        ...
