"""One configuration measured again and again through a run, to see whether the machine itself has changed."""

from __future__ import annotations

import time
from collections.abc import Callable

from tunesmith.bench import Drift, drift
from tunesmith.protocol import Cell, StepResult
from tunesmith.records import Estimate

from . import events
from ._recorded import RecordedMeasure

SECONDS_BETWEEN = 60.0


class Anchor:
    """Before, during (at the end of a step, at most once a minute) and after a run: the first cell that ran.

    Each visit is committed under a round of its own, so a run that goes on later adds to the same series.
    """

    def __init__(self, observe: events.Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._observe, self._clock = observe, clock
        self._cell: Cell | None = None
        self._measure: RecordedMeasure | None = None
        self._first: Estimate | None = None
        self._visits, self._last, self._measured_then = 0, 0.0, 0
        self.worst: Drift | None = None

    def after_step(self, result: StepResult, measure: RecordedMeasure) -> None:
        """Choose the anchor when there is none yet, else visit it when it is time."""
        if self._cell is None:
            self._cell = next(iter(result.table.cells), None)
            self._measure = measure
            self.visit()
        elif self._clock() - self._last >= SECONDS_BETWEEN:
            self.visit()

    def visit(self) -> None:
        """Measure the anchor once more, unless nothing new was measured since the last time."""
        if self._cell is None or self._measure is None or self._measure.ledger.measured == self._measured_then:
            return
        measurement = self._measure.again(self._cell, f"anchor/{self._next_visit()}")
        self._last, self._measured_then = self._clock(), self._measure.ledger.measured
        if not measurement.estimate:
            return
        self._first = self._first or measurement.estimate
        seen = drift(self._first, measurement.estimate)
        if self._visits > 1:
            self._observe(events.DriftSeen(seen.ratio, seen.alarm))
            if self.worst is None or abs(seen.ratio - 1) > abs(self.worst.ratio - 1):
                self.worst = seen

    def _next_visit(self) -> int:
        assert self._cell is not None
        assert self._measure is not None
        key = self._measure.key(self._cell)
        while earlier := self._measure.store.find([key], f"anchor/{self._visits}"):
            self._first = self._first or earlier[key].estimate
            self._visits += 1
        self._visits += 1
        return self._visits - 1
