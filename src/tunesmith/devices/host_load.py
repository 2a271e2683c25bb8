"""What other processes do on the processors that this one may use, while something is timed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

STAT = Path("/proc/stat")
IDLE = (3, 4)
"""Of the numbers in a line: idle, and waiting for a disk. The two last ones, of guests, are in the first two."""
COUNTED = 8


class HostLoad:
    """Looks at the processors' time when it is made and when it is asked."""

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
        """How many of our processors others kept busy since, on average; None where the system does not tell."""
        now, began = self._look(), self._began
        if now is None or began is None or now[0] <= began[0]:
            return None
        seconds, busy, own = (after - before for before, after in zip(began, now, strict=True))
        return max(busy - own, 0.0) / seconds

    def _look(self) -> tuple[float, float, float] | None:
        """Now, the busy seconds of our processors, and those of this process and its children; None if unknown."""
        try:
            lines = self._stat.read_text(encoding="ascii").splitlines()
            found = [line.split() for line in lines if line.startswith("cpu")]
            busy = sum(_busy(words) for words in found if words[0] in {f"cpu{number}" for number in self.processors})
        except (OSError, ValueError):
            return None
        return (self._clock(), busy / os.sysconf("SC_CLK_TCK"), self._own()) if found else None


def _busy(words: list[str]) -> int:
    return sum(int(word) for index, word in enumerate(words[1 : 1 + COUNTED]) if index not in IDLE)
