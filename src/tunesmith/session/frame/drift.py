"""The anchor: one cell that is measured again and again, to see whether the machine's speed changes during a run.

If it has changed, the first times that could decide wrongly are taken again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunesmith.bench import Drift, drift
from tunesmith.bench.machine_failures import machine_failure
from tunesmith.protocol import DRIFT, Cell
from tunesmith.records import Estimate, Problem

from . import events

if TYPE_CHECKING:
    from .measure import RecordedMeasure

SECONDS_BETWEEN = 30.0


class Anchor:
    """The first cell that ran, measured at the beginning of a run, at most twice a minute meanwhile, and at the end.

    Each visit is committed under a round of its own. A resumed run adds to the same series and compares all of it,
    since its tables mix times of both runs. `series` tells the folder's visits from those of other folders in the same
    store, which were made on other machines.
    """

    def __init__(self, observe: events.Observer, clock: Callable[[], float] = time.monotonic, series: str = "") -> None:
        self._observe, self._clock, self._prefix = observe, clock, f"anchor/{series}/" if series else "anchor/"
        self._chosen: tuple[RecordedMeasure, Cell] | None = None
        self._series: list[Estimate | None] = []
        self._last, self._measured_then = 0.0, 0
        self._since_visit: list[_Screening] = []

    def after_screening(self, measure: RecordedMeasure, cells: Sequence[Cell], racing: bool) -> None:
        """To be called when some of these cells were measured for the first time.

        If the anchor shows that the machine has changed since the last visit, all cells screened since then that may be
        the fastest are measured again: no decision may mix times from before and after the change.
        """
        if self._chosen is None:
            return
        self._since_visit.append(_Screening(measure, cells, racing))
        visits = len(self._series)
        self.visit_if_due(measure, ())
        if len(self._series) == visits:
            return
        screenings, self._since_visit = self._since_visit, []
        if change := self._change:
            for screening in screenings:
                screening.measure.renew(screening.contenders(change), screening.racing)

    def visit_if_due(self, measure: RecordedMeasure, cells: Iterable[Cell]) -> None:
        """Visit the anchor if the last visit is long enough ago. The first of the `cells`, which ran, becomes the
        anchor if there is none yet."""
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
        measurement = measure.again(cell, self._round())
        if machine_failure(measurement):
            return  # it is not in the store, and the next visit takes its number
        self._series.append(measurement.estimate)
        self._last, self._measured_then = self._clock(), measure.ledger.measured
        if len(self._changes) > 1 and self._series[-1]:
            self._observe(events.DriftMeasured(self._changes[-1].ratio, self._changes[-1].alarm))

    @property
    def worst(self) -> Drift | None:
        """The largest change since the first visit; None before the second."""
        return max(self._changes[1:], key=lambda change: abs(change.ratio - 1), default=None)

    @property
    def _changes(self) -> list[Drift]:
        """Every visit that ran, compared with the first that ran."""
        ran = [estimate for estimate in self._series if estimate]
        return [drift(ran[0], estimate) for estimate in ran]

    @property
    def _change(self) -> float:
        """The change of speed between the last two visits, as a factor above 1; 0 if it is no more than noise."""
        last_two = self._series[-2:]
        if len(last_two) < 2 or last_two[0] is None or last_two[1] is None:
            return 0.0
        change = drift(last_two[0], last_two[1])
        return max(change.ratio, 1 / change.ratio) if change.alarm else 0.0

    def _round(self) -> str:
        """The store's name of the next visit."""
        return f"{self._prefix}{len(self._series)}"

    def _choose(self, measure: RecordedMeasure, cell: Cell) -> None:
        self._chosen = measure, cell
        rounds = measure.rounds(cell)
        while earlier := rounds.get(self._round()):
            self._series.append(earlier.estimate)


@dataclass(frozen=True)
class _Screening:
    """Cells that were screened together; some of them were measured since the anchor's last visit."""

    measure: RecordedMeasure
    cells: Sequence[Cell]
    racing: bool

    def contenders(self, change: float) -> list[Cell]:
        """The cells that may be the fastest on their problem, if the machine's speed changed by this factor."""
        times = self.measure.times(self.cells, self.racing)
        best: dict[Problem, float] = {}
        for (_, problem), estimate in times.items():
            best[problem] = min(estimate.seconds, best.get(problem, math.inf))
        return [cell for cell, estimate in times.items() if estimate.low <= best[cell[1]] * change * (1 + DRIFT)]
