"""Whether the machine itself has changed during a run: one cell is measured again and again. Where it has, first times
are taken anew."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunesmith.bench import Drift, drift
from tunesmith.bench.machine_failures import blame
from tunesmith.protocol import DRIFT, Cell
from tunesmith.records import Estimate, Problem

from . import events

if TYPE_CHECKING:
    from .measure import RecordedMeasure

SECONDS_BETWEEN = 30.0


class Anchor:
    """The first cell that ran, measured at the beginning of a run, at most twice a minute meanwhile, and at the end.

    Each visit is committed under a round of its own. A run that goes on later adds to the same series and judges all
    of it, since its tables mix what was measured then and now.
    """

    def __init__(self, observe: events.Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._observe, self._clock = observe, clock
        self._chosen: tuple[RecordedMeasure, Cell] | None = None
        self._series: list[Estimate | None] = []
        self._last, self._measured_then = 0.0, 0
        self._since: list[_Screened] = []

    def screened(self, measure: RecordedMeasure, cells: Sequence[Cell], racing: bool) -> None:
        """Cells of which some were just measured for the first time.

        If the anchor tells that the machine has changed since it was last visited, those of them that may be the
        fastest in truth are measured again, so that nothing is decided by times from before and after the change.
        """
        if self._chosen is None:
            return
        self._since.append(_Screened(measure, cells, racing))
        before = len(self._series)
        self.ran(measure, ())
        if len(self._series) == before:
            return
        window, self._since = self._since, []
        if change := self._change:
            for one in window:
                one.measure.renew(one.contenders(change), one.racing)

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

    @property
    def _change(self) -> float:
        """Between the last two visits, as a factor above one; 0 where it is no more than noise."""
        ran = self._series[-2:]
        if len(ran) < 2 or ran[0] is None or ran[1] is None:
            return 0.0
        seen = drift(ran[0], ran[1])
        return max(seen.ratio, 1 / seen.ratio) if seen.alarm else 0.0

    def _choose(self, measure: RecordedMeasure, cell: Cell) -> None:
        self._chosen = measure, cell
        rounds = measure.rounds(cell)
        while earlier := rounds.get(_round(len(self._series))):
            self._series.append(earlier.estimate)


@dataclass(frozen=True)
class _Screened:
    """Cells that were measured together since the anchor's last visit, at least some of them."""

    measure: RecordedMeasure
    cells: Sequence[Cell]
    racing: bool

    def contenders(self, change: float) -> list[Cell]:
        """Those that the best of their problem may owe its lead to a change of the machine's speed by this factor."""
        times = self.measure.times(self.cells, self.racing)
        best: dict[Problem, float] = {}
        for (_, problem), taken in times.items():
            best[problem] = min(taken.seconds, best.get(problem, math.inf))
        return [cell for cell, taken in times.items() if taken.low <= best[cell[1]] * change * (1 + DRIFT)]


def _round(visit: int) -> str:
    return f"anchor/{visit}"
