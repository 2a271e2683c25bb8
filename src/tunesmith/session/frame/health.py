"""Whether the device was stable and unshared during a run: `HealthWatch` looks at it now and then, and reports."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator

from tunesmith.devices.health import Health, device_health
from tunesmith.records import Target

from . import events

SECONDS_BETWEEN = 2.0

HOT_SHARE = 0.05
"""The share of the looks that must show a throttle before it is reported: a single one is a spike."""

BUSY_BESIDE = 0.75
"""The load, in processors beyond the device's own, above which a tuned CPU is reported as busy with other work."""


class HealthWatch:
    """Looks at the device when an event passes, at most every two seconds."""

    def __init__(
        self,
        target: Target,
        look_at: Callable[[Target], Health] = device_health,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._look_at, self._clock = target, look_at, clock
        self._last = -SECONDS_BETWEEN
        self.looks: list[Health] = []

    def look_if_due(self) -> None:
        now = self._clock()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            self.looks.append(self._look_at(self._target))

    def watching(self, observe: events.Observer) -> events.Observer:
        """An observer that looks at the device if a look is due, then passes the event on to `observe`."""

        def look_and_observe(event: events.Event) -> None:
            self.look_if_due()
            observe(event)

        return look_and_observe

    def sentences(self) -> Iterator[str]:
        """What a person should know before trusting the times; nothing if the device was stable and unshared."""
        others = [health.others for health in self.looks if health.others]
        if others:
            yield f"the device was not alone: up to {max(others)} other processes used it"
        reasons = Counter(reason for health in self.looks for reason in health.throttled)
        for reason, count in reasons.items():
            if count > HOT_SHARE * len(self.looks):
                yield f"the clock was held down ({reason}) in {100 * count / len(self.looks):.0f} % of the looks"
        busy = [health.busy for health in self.looks if health.busy is not None]
        if busy and min(busy) > self._target.compute_units + BUSY_BESIDE:
            yield f"the host was busy with other work: load {min(busy):.1f} on {self._target.compute_units} processors"

    def facts(self) -> dict[str, float]:
        """Least and greatest clock (MHz), temperature (degrees Celsius) and power (W) of all looks."""
        facts: dict[str, float] = {}
        for name in ("clock_mhz", "temperature_c", "power_w"):
            values = [value for health in self.looks if (value := getattr(health, name)) is not None]
            if values:
                facts |= {f"{name}_least": min(values), f"{name}_greatest": max(values)}
        return facts
