"""One configuration measured again and again through a run, to see whether the machine itself has changed."""

from __future__ import annotations

import time
from collections.abc import Callable

from tunesmith.bench import Drift, drift
from tunesmith.protocol import Cell, StepResult
from tunesmith.records import Estimate

from . import events
from .measure import RecordedMeasure

SECONDS_BETWEEN = 60.0


class Anchor:
    """Before, during (at the end of a step, at most once a minute) and after a run: the first cell that ran.

    Each visit is committed under a round of its own. A run that goes on later adds to the same series and judges all
    of it, since its tables mix what was measured then and now.
    """

    def __init__(self, observe: events.Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._observe, self._clock = observe, clock
        self._chosen: tuple[RecordedMeasure, Cell] | None = None
        self._series: list[Estimate | None] = []
        self._last, self._measured_then = 0.0, 0

    def after_step(self, result: StepResult, measure: RecordedMeasure) -> None:
        """Choose the anchor when there is none yet, else visit it when it is time."""
        if self._chosen is None:
            self._choose(result, measure)
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
        self._series.append(measure.again(cell, _round(len(self._series))).estimate)
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

    def _choose(self, result: StepResult, measure: RecordedMeasure) -> None:
        cell = next(iter(result.table.cells), None)
        if cell is None:
            return
        self._chosen = measure, cell
        key = measure.key(cell)
        while earlier := measure.store.find([key], _round(len(self._series))):
            self._series.append(earlier[key].estimate)


def _round(visit: int) -> str:
    return f"anchor/{visit}"
