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
from tunesmith.records import Estimate, Measurement, Problem

from . import events
from .many_devices import ManyDevices
from .siblings import SLOWER, relative_times, slow_devices

if TYPE_CHECKING:
    from .measure import RecordedMeasure

SECONDS_BETWEEN = 30.0

ROUND = "anchor/"
"""How the store's names of the anchor's rounds begin. The number of the visit ends them."""

ON = "on "
"""Stands before a device's name in the name of a round, if the run has several devices."""

ANCHOR_TRIES = 3
"""With several devices, the anchor is the first of so many cells that runs on all of them."""


class Anchor:
    """The first cell that ran, measured at the beginning of a run, at most twice a minute meanwhile, and at the end.

    Each visit is committed under a round of its own. A resumed run adds to the same series and compares all of it,
    since its tables mix times of both runs. `series` tells the folder's visits from those of other folders in the same
    store, which were made on other machines. With several devices a visit measures the cell on each of them, and each
    has a series of its own. A device that is slower than its siblings beyond `siblings.SLOWER` is left out.
    """

    def __init__(
        self,
        observe: events.Observer,
        clock: Callable[[], float] = time.monotonic,
        complain: Callable[[str], None] = lambda sentence: None,
        series: str = "",
    ) -> None:
        self._observe, self._clock, self._complain = observe, clock, complain
        self._prefix = f"{ROUND}{series}/" if series else ROUND
        self._chosen: tuple[RecordedMeasure, Cell] | None = None
        self._offered: tuple[RecordedMeasure, Sequence[Cell]] | None = None
        self._series: dict[str, list[Estimate | None]] = {}
        self._slow: set[str] = set()
        self._visits = 0
        self._last, self._measured_then = 0.0, 0
        self._since_visit: list[_Screening] = []
        self._stale: list[tuple[_Screening, float]] = []
        self._visited: set[str] = set()
        """The devices that the last visit reached."""

    def before_screening(self, measure: RecordedMeasure, cells: Sequence[Cell], racing: bool, measures: bool) -> None:
        """To be called before some of these cells are measured (`measures`), or none. With several devices, the first
        cells of a run contain its anchor, which compares the devices before any of them is given work."""
        if measures:
            # Now, since parts of a plan that are measured together ask for a visit one after the other.
            self._since_visit.append(_Screening(measure, cells, racing))
        if self._chosen is not None or not isinstance(measure.bench, ManyDevices):
            return
        self._offered = self._offered or (measure, cells[:ANCHOR_TRIES])
        if not measures:
            return
        first, offered = self._offered
        # What follows is compiled while the devices are opened and compared.
        unknown = [cell for cell in cells if not measure.rounds(cell)]
        measure.bench.prepare([first.job(cell) for cell in offered] + [measure.job(cell) for cell in unknown])
        for cell in offered:
            self._choose(first, cell)
            self._measure()
            latest = self._latest()
            if latest and len(latest) == len(self._series):
                break
        else:
            self._chosen, self._offered = None, None
            return
        measure.bench.admit_by(first.job(cell), self._admit)

    def visit_if_due(self, measure: RecordedMeasure, cells: Iterable[Cell] = ()) -> None:
        """To be called when cells of this measure were measured for the first time. Visit the anchor if the last visit
        is long enough ago. The first of the `cells`, which ran, becomes the anchor if there is none yet.

        If the anchor shows that the machine has changed since the last visit, all cells screened since then that may be
        the fastest are measured again: no decision may mix times from before and after the change. Of parts of a plan
        that are measured together, each renews its own, before it looks at its times.
        """
        visits = self._visits
        if self._chosen is None:
            if cell := next(iter(cells), None):
                self._choose(measure, cell)
                self.visit()
        elif self._clock() - self._last >= SECONDS_BETWEEN:
            self.visit()
        if self._visits > visits:
            self._find_stale()
        mine = [entry for entry in self._stale if entry[0].measure is measure or not measure.questions.come_together]
        self._stale = [entry for entry in self._stale if entry not in mine]
        for screening, change in mine:
            screening.measure.renew(screening.contenders(change), screening.racing)

    def decided(self, measure: RecordedMeasure) -> None:
        """To be called when a measure's step is decided: what it screened need not be measured again any more."""
        self._since_visit = [screening for screening in self._since_visit if screening.measure is not measure]
        self._stale = [entry for entry in self._stale if entry[0].measure is not measure]

    def _find_stale(self) -> None:
        """If the last visit shows a change, all that was screened since the visit before is stale. What is not measured
        yet waits for the next visit."""
        done = [screening for screening in self._since_visit if screening.is_measured]
        self._since_visit = [screening for screening in self._since_visit if screening not in done]
        if change := self._change:
            self._stale += [(screening, change) for screening in done]

    def visit(self) -> None:
        """Measure the anchor once more, unless nothing new was measured since the last time."""
        if self._chosen is not None and self._chosen[0].ledger.measured != self._measured_then:
            self._measure()

    @property
    def worst(self) -> Drift | None:
        """The largest change of a device since its first visit; None before the second."""
        changes = (change for device in self._series for change in self._changes(device)[1:])
        return max(changes, key=lambda change: abs(change.ratio - 1), default=None)

    def relative_times(self) -> dict[str, float]:
        """Each device's last time of the anchor over that of the device in the middle."""
        return relative_times(self._latest())

    def _measure(self) -> None:
        assert self._chosen is not None
        measure, cell = self._chosen
        self._visited = set()
        for device, measurement in measure.everywhere(cell, self._round).items():
            if machine_failure(measurement):
                continue  # it is not in the store, and the next visit takes its number
            self._visited.add(device)
            self._series.setdefault(device, []).append(measurement.estimate)
            changes = self._changes(device)
            if len(changes) > 1 and self._series[device][-1]:
                self._observe(events.DriftMeasured(changes[-1].ratio, changes[-1].alarm))
        if self._visited:
            self._visits += 1
            self._last, self._measured_then = self._clock(), measure.ledger.measured
            self._leave_out_slow(measure)

    def _leave_out_slow(self, measure: RecordedMeasure) -> None:
        if not isinstance(measure.bench, ManyDevices):
            return
        for device, ratio in slow_devices(self._latest()).items():
            if device not in self._slow:
                self._slow.add(device)
                why = f"its anchor takes {ratio:.2f} of its siblings' time, and {1 + SLOWER:.2f} is allowed"
                measure.bench.leave_out(device, why)
                self._complain(f"{device} was left out: {why}")

    def _admit(self, device: str, measurement: Measurement) -> bool:
        """Take the anchor's time on a device that has joined. Whether the device may work."""
        assert self._chosen is not None
        measure, cell = self._chosen
        # The device may have been here before, under this name; then its series goes on.
        measure.commit([(cell, measurement)], self._round(device))
        if not machine_failure(measurement):
            self._series.setdefault(device, []).append(measurement.estimate)
            self._leave_out_slow(measure)
        return measurement.ok and device not in self._slow

    def _latest(self) -> dict[str, Estimate]:
        """The last time of the anchor on each device on which it ran."""
        return {device: series[-1] for device, series in self._series.items() if series and series[-1]}

    def _changes(self, device: str) -> list[Drift]:
        """Every visit that ran on a device, compared with the first that ran there."""
        ran = [estimate for estimate in self._series[device] if estimate]
        return [drift(ran[0], estimate) for estimate in ran]

    @property
    def _change(self) -> float:
        """The largest change of a device's speed between the last visit and the one before, as a factor above 1; 0 if
        there is no more than noise."""
        series = (self._series[device] for device in self._visited if len(self._series[device]) > 1)
        changes = (drift(before, now) for *_, before, now in series if before and now)
        return max((max(change.ratio, 1 / change.ratio) for change in changes if change.alarm), default=0.0)

    def _choose(self, measure: RecordedMeasure, cell: Cell) -> None:
        self._chosen, self._series = (measure, cell), {}
        stored = measure.rounds(cell)
        for name in stored:
            if name.startswith(f"{self._prefix}{ON}"):
                device = name.removeprefix(f"{self._prefix}{ON}").rpartition("/")[0]
                self._series.setdefault(device, [])
            elif name == f"{self._prefix}0":
                self._series.setdefault("", [])
        for device, series in self._series.items():
            while earlier := stored.get(self._round(device)):
                series.append(earlier.estimate)

    def _round(self, device: str) -> str:
        """The store's name of a device's next visit. The name of the only device is empty."""
        visit = len(self._series.get(device, ()))
        return f"{self._prefix}{ON}{device}/{visit}" if device else f"{self._prefix}{visit}"


@dataclass(frozen=True)
class _Screening:
    """Cells that were screened together; some of them were measured since the anchor's last visit."""

    measure: RecordedMeasure
    cells: Sequence[Cell]
    racing: bool

    @property
    def is_measured(self) -> bool:
        return len(self.measure.lookup(self.cells, self.racing)) == len(set(self.cells))

    def contenders(self, change: float) -> list[Cell]:
        """The cells that may be the fastest on their problem, if the machine's speed changed by this factor."""
        times = self.measure.times(self.cells, self.racing)
        best: dict[Problem, float] = {}
        for (_, problem), estimate in times.items():
            best[problem] = min(estimate.seconds, best.get(problem, math.inf))
        return [cell for cell, estimate in times.items() if estimate.low <= best[cell[1]] * change * (1 + DRIFT)]
