"""Whether the machine itself has changed during a run: one cell is measured again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tunesmith.bench import Drift, drift
from tunesmith.bench.machine import blame
from tunesmith.protocol import Cell
from tunesmith.records import Estimate

from . import events

if TYPE_CHECKING:
    from .measure import RecordedMeasure

SECONDS_BETWEEN = 60.0


class Anchor:
    """The first cell that ran, measured at the beginning of a run, at most once a minute meanwhile, and at the end.

    Each visit is committed under a round of its own. A run that goes on later adds to the same series and judges all
    of it, since its tables mix what was measured then and now.
    """

    def __init__(self, observe: events.Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._observe, self._clock = observe, clock
        self._chosen: tuple[RecordedMeasure, Cell] | None = None
        self._series: list[Estimate | None] = []
        self._last, self._measured_then = 0.0, 0

    def ran(self, measure: RecordedMeasure, cells: Iterable[Cell]) -> None:
        """Cells that ran: the first of all becomes the anchor, which is visited when it is time."""
        if self._chosen is None:
            if cell := next(iter(cells), None):
                self._choose(measure, cell)
                self.visit()
        elif self._clock() - self._last >= SECONDS_BETWEEN:
            self.visit()

    def visit(self) -> None:
        """Measure the anchor once more, unless nothing new was measured since the last time."""
        if self._chosen is None:
            return
        measure, cell = self._chosen
        if measure.ledger.measured == self._measured_then:
            return
        seen = measure.again(cell, _round(len(self._series)))
        if blame(seen):
            return  # it is not in the store, and the next visit has its number
        self._series.append(seen.estimate)
        self._last, self._measured_then = self._clock(), measure.ledger.measured
        if len(self._changes) > 1 and self._series[-1]:
            self._observe(events.DriftSeen(self._changes[-1].ratio, self._changes[-1].alarm))

    @property
    def worst(self) -> Drift | None:
        """The largest change since the first visit; None before the second."""
        return max(self._changes[1:], key=lambda seen: abs(seen.ratio - 1), default=None)

    @property
    def _changes(self) -> list[Drift]:
        """Every visit that ran against the first that did."""
        ran = [estimate for estimate in self._series if estimate]
        return [drift(ran[0], estimate) for estimate in ran]

    def _choose(self, measure: RecordedMeasure, cell: Cell) -> None:
        self._chosen = measure, cell
        rounds = measure.rounds(cell)
        while earlier := rounds.get(_round(len(self._series))):
            self._series.append(earlier.estimate)


def _round(visit: int) -> str:
    return f"anchor/{visit}"
