"""The library against a peer on the same arrays: blocks of calls that take turns, host time on both sides."""

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
"""OpenBLAS's threads spin for some 30 ms after their last call before they sleep; the other side must not meet them."""


@dataclass(frozen=True, slots=True)
class PeerRatio:
    """A peer's time over ours for one problem: above 1 we are faster. 95 % interval over paired blocks."""

    ours: Estimate
    peer: Estimate
    ratio: float
    low: float
    high: float


def compare(ours: Sequence[Call], peer: Sequence[Call], blocks: int = BLOCKS) -> PeerRatio:
    """Time two ways to do the same; each is given as calls over different operands, taken in turn.

    Blocks alternate with a pause between; the first call of a block is dropped, since it wakes threads and refills
    caches that the other side took; a block's value is the median of the rest. Which side begins alternates too.
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
