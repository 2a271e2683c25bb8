"""The load of other processes, while something is timed, on the processors that this process may use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

STAT = Path("/proc/stat")
IDLE = (3, 4)
"""Positions of the idle times in a line: idle, and waiting for a disk."""
COUNTED = 8
"""Numbers of a line that are added up. The last two, the guests' times, are contained in the first two."""


class HostLoad:
    """Measures the time that other processes used the processors since this object was made."""

    def __init__(
        self,
        stat: Path = STAT,
        processors: frozenset[int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = lambda: sum(os.times()[:4]),
    ) -> None:
        self.processors = processors or frozenset(os.sched_getaffinity(0))
        self._stat, self._clock, self._own = stat, clock, own
        self._began = self._look()

    def others(self) -> float | None:
        """How many of our processors other processes kept busy, on average; None if the system does not tell."""
        now, began = self._look(), self._began
        if now is None or began is None or now[0] <= began[0]:
            return None
        seconds, busy, own = (after - before for before, after in zip(began, now, strict=True))
        return max(busy - own, 0.0) / seconds

    def _look(self) -> tuple[float, float, float] | None:
        """The time, the busy seconds of our processors, and those of this process and its children; None if unknown."""
        try:
            lines = self._stat.read_text(encoding="ascii").splitlines()
            rows = [line.split() for line in lines if line.startswith("cpu")]
            busy = sum(_busy(row) for row in rows if row[0] in {f"cpu{number}" for number in self.processors})
        except (OSError, ValueError):
            return None
        return (self._clock(), busy / os.sysconf("SC_CLK_TCK"), self._own()) if rows else None


def _busy(row: list[str]) -> int:
    return sum(int(ticks) for index, ticks in enumerate(row[1 : 1 + COUNTED]) if index not in IDLE)
