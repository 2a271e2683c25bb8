"""The library compared with a peer on the same arrays: alternating blocks of calls, host time on both sides."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from tunesmith.bench import median_interval, paired_log_ratio
from tunesmith.records import Estimate

Call = Callable[[], object]

BLOCKS = 12
BLOCK_SECONDS = 0.15
PAUSE_SECONDS = 0.08
"""OpenBLAS's threads spin for some 30 ms after their last call; the pause keeps them from slowing the other side."""


@dataclass(frozen=True, slots=True)
class PeerRatio:
    """The peer's time over ours for one problem: above 1, ours is faster. `low` to `high` is the 95 % interval over
    paired blocks."""

    ours: Estimate
    peer: Estimate
    ratio: float
    low: float
    high: float


def compare(ours: Sequence[Call], peer: Sequence[Call], blocks: int = BLOCKS) -> PeerRatio:
    """Time two sides that compute the same. Each side has calls over different operands, which are used in turn.

    Blocks of the sides alternate, with a pause between; which side begins alternates too. A block's value is the median
    of its calls without the first, which wakes threads and refills caches.
    """
    turns = [cycle(ours), cycle(peer)]
    for turn in turns:
        _block(turn, 2)
    calls = [_calls_a_block(turn) for turn in turns]
    values: tuple[list[float], list[float]] = ([], [])
    for block in range(blocks):
        for side in (0, 1) if block % 2 == 0 else (1, 0):
            time.sleep(PAUSE_SECONDS)
            values[side].append(float(np.median(_block(turns[side], calls[side])[1:])))
    mean, low, high = paired_log_ratio(values[1], values[0])
    return PeerRatio(
        median_interval(values[0]), median_interval(values[1]), math.exp(mean), math.exp(low), math.exp(high)
    )


def _block(turn: cycle[Call], calls: int) -> NDArray[np.float64]:
    seconds = np.empty(calls)
    for i in range(calls):
        call = next(turn)
        start = time.perf_counter()
        call()
        seconds[i] = time.perf_counter() - start
    return seconds


def _calls_a_block(turn: cycle[Call]) -> int:
    once = float(_block(turn, 3)[1:].min())
    return max(4, min(2000, math.ceil(BLOCK_SECONDS / max(once, 1e-7))))
