"""Whether the device was stable and alone during a run: looks at it, now and then, and says what was seen."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator

from tunesmith.devices.health import Health, look
from tunesmith.records import Target

from . import events

SECONDS_BETWEEN = 2.0

HOT_SHARE = 0.05
"""Share of the looks that must show a throttle before it is worth a sentence: a single one is a spike."""

BUSY_BESIDE = 0.75
"""Processors that others keep busy on the host whose CPU is tuned, beyond one of ours."""


class HealthWatch:
    """Looks at the device at most every two seconds when it is told that something happened."""

    def __init__(
        self,
        target: Target,
        glance: Callable[[Target], Health] = look,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._glance, self._clock = target, glance, clock
        self._last = -SECONDS_BETWEEN
        self.seen: list[Health] = []

    def happened(self) -> None:
        now = self._clock()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            self.seen.append(self._glance(self._target))

    def beside(self, observe: events.Observer) -> events.Observer:
        """An observer that has a look at the device before it passes on what happened."""

        def watched(event: events.Event) -> None:
            self.happened()
            observe(event)

        return watched

    def sentences(self) -> Iterator[str]:
        """What a person should know before trusting the numbers; nothing when all was quiet."""
        others = [one.others for one in self.seen if one.others]
        if others:
            yield f"the device was not alone: up to {max(others)} other processes used it"
        reasons = Counter(reason for one in self.seen for reason in one.throttled)
        for reason, count in reasons.items():
            if count > HOT_SHARE * len(self.seen):
                yield f"the clock was held down ({reason}) in {100 * count / len(self.seen):.0f} % of the looks"
        busy = [one.busy for one in self.seen if one.busy is not None]
        if busy and min(busy) > self._target.compute_units + BUSY_BESIDE:
            yield f"the host was busy with other work: load {min(busy):.1f} on {self._target.compute_units} processors"

    def facts(self) -> dict[str, float]:
        """Least and greatest clock (MHz), temperature (degrees Celsius) and power (W) that were seen."""
        found: dict[str, float] = {}
        for name in ("clock_mhz", "temperature_c", "power_w"):
            values = [value for one in self.seen if (value := getattr(one, name)) is not None]
            if values:
                found |= {f"{name}_least": min(values), f"{name}_greatest": max(values)}
        return found
