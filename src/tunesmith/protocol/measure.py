"""`Measure`: the interface through which the protocol has cells measured, and `TimeTable`, its answer. The session and
the tests have implementations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tunesmith.records import Configuration, Estimate, Problem

Cell = tuple[Configuration, Problem]


@dataclass(frozen=True)
class TimeTable:
    """Times in seconds by (configuration, problem). A cell that did not run is absent.

    `paired` holds the finalists' samples by block: element i of each was measured next to element i of the others, so
    that log ratios can be formed pair by pair.
    """

    cells: Mapping[Cell, Estimate] = field(default_factory=dict)
    paired: Mapping[Cell, tuple[float, ...]] = field(default_factory=dict)

    def rows(self) -> dict[Configuration, dict[Problem, Estimate]]:
        """The times by configuration and problem, for configurations that ran anywhere."""
        rows: dict[Configuration, dict[Problem, Estimate]] = {}
        for (config, problem), estimate in self.cells.items():
            rows.setdefault(config, {})[problem] = estimate
        return rows

    def __or__(self, other: TimeTable) -> TimeTable:
        """The cells and samples of both tables; where both have a cell, the other table's."""
        return TimeTable({**self.cells, **other.cells}, {**self.paired, **other.paired})


class Measure(Protocol):
    """Measures configurations of one problem type. All methods may answer from earlier measurements."""

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> TimeTable:
        """Measure every cell of every group once.

        The cells of a group compete only with each other: with `racing`, a cell that is provably slower than another
        cell of its group on the same problem may be stopped early (it still has a time). A cell in several groups is
        measured once, and stopped only if it is slower in each of them.
        """
        ...

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        """Measure the finalists again, interleaved. `paired` of the result has every cell that ran."""
        ...

    def announce(self, confirmations: Iterable[tuple[Sequence[Configuration], Sequence[Problem]]]) -> None:
        """Learn what `confirm` will be asked for next, one question after the other. Several devices may measure it
        now, at once. With one device nothing need be done, and the iterable is not read."""
        ...
