"""When is a time known well enough? Warm-up, sampling, racing, blocks: all over a function that takes one sample."""

from __future__ import annotations

import bisect
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunesmith.records import Estimate

from ._job import Policy
from .statistics import SMALLEST_COUNT, interval_rank, median_interval, paired_log_ratio, relative_half_width

Take = Callable[[], float]
"""Executes a plan and returns the device seconds of one execution."""
Clock = Callable[[], float]
"""Seconds of wall time from any origin."""

HOPELESS = 3.0
"""A candidate that never came within this factor of the best's upper bound is not sampled at all: no disturbance that
we have seen (1.9 from a busy neighbour) makes up for it."""

RACE_SLACK = 0.2
"""By how much a candidate must be slower than a rival before a race stops it, beside what their intervals say: the two
were timed at different moments, between which the machine's speed may change. Of six equal candidates on a machine
whose speed scatters by 5 %, the slowest takes over 1.2 times the fastest in 5 % of the cases (studentised range)."""

CLEAR = 0.999
"""Confidence at which finalists are told apart before their last block. So strict a look does not spoil the interval of
the end (Haybittle and Peto's rule for looking at a trial before its end, British Journal of Cancer 34, 1976, 585)."""

_WARM_UP_BLOCK = 3


@dataclass(frozen=True, slots=True)
class Timed:
    """Samples in seconds with what they say; `raced` when they were cut short for being provably slower."""

    samples: tuple[float, ...]
    raced: bool = False

    @property
    def estimate(self) -> Estimate:
        return median_interval(self.samples)


class _Stopwatch:
    """What was spent since it was made: wall or device seconds, whichever is more (a fake device's cost no wall)."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._since, self._device = clock, clock(), 0.0

    def run(self, take: Take) -> float:
        seconds = take()
        self._device += seconds
        return seconds

    @property
    def spent(self) -> float:
        return max(self._clock() - self._since, self._device)


def race_above(rival: float) -> float:
    """Seconds from which a candidate has lost a race, where the upper end of a rival's interval is `rival` seconds."""
    return rival * (1 + RACE_SLACK)


def time_plan(take: Take, policy: Policy, race_above: float, clock: Clock) -> Timed:
    """Warm up, then sample until the median is known as well as the policy asks.

    Sampling ends when half the interval is within `noise` of the median, when the time or the number of samples is
    used up, or when the interval's lower end exceeds `race_above` (infinite: no race). At least six samples, so that
    there is an interval, except for a candidate that is hopeless.
    """
    warm = warm_up(take, policy, clock)
    if len(warm) > 1 and min(warm) > HOPELESS * race_above:
        return Timed(tuple(warm), raced=True)
    watch = _Stopwatch(clock)
    samples: list[float] = []
    ordered: list[float] = []
    while len(samples) < policy.maximum_samples or len(samples) < SMALLEST_COUNT:
        samples.append(watch.run(take))
        bisect.insort(ordered, samples[-1])
        if len(samples) < max(policy.minimum_samples, SMALLEST_COUNT):
            continue
        if ordered[interval_rank(len(ordered)) - 1] > race_above:
            return Timed(tuple(samples), raced=True)
        if watch.spent > policy.sampling_seconds or relative_half_width(median_interval(ordered)) <= policy.noise:
            break
    return Timed(tuple(samples))


def warm_up(take: Take, policy: Policy, clock: Clock) -> list[float]:
    """Execute until two successive medians of three agree within the noise, or the time for it is used up.

    The very first execution is dropped: it may pay for code loading and first touches. Returns the other times.
    """
    watch = _Stopwatch(clock)
    watch.run(take)
    times: list[float] = []
    previous = math.inf
    while watch.spent < policy.warm_up_seconds or len(times) < 2:
        times.append(watch.run(take))
        if len(times) % _WARM_UP_BLOCK == 0:
            block = statistics.median(times[-_WARM_UP_BLOCK:])
            if abs(block - previous) <= policy.noise * block:
                break
            previous = block
    return times


def interleave(
    takes: Sequence[Take],
    policy: Policy,
    clock: Clock,
    at: Callable[[int], None] = lambda index: None,
    until_clear: bool = False,
) -> list[tuple[float, ...]]:
    """`policy.confirm_blocks` samples of each, aligned: sample i of all comes from the same round of blocks. With
    `until_clear` fewer, but six, where one is faster than all others beyond any doubt.

    In a round every candidate has one block of executions, in an order drawn anew for each round, so that neither
    drift nor a neighbour's leftovers favour anyone. A block's first execution is dropped and its median kept. `at` is
    told which candidate comes next.
    """
    order = random.Random(policy.seed)
    lengths = [_block_length(take, policy, clock, at, index) for index, take in enumerate(takes)]
    samples: list[list[float]] = [[] for _ in takes]
    for _ in range(max(policy.confirm_blocks, SMALLEST_COUNT)):
        for index in order.sample(range(len(takes)), len(takes)):
            at(index)
            takes[index]()
            samples[index].append(statistics.median(takes[index]() for _ in range(lengths[index])))
        if until_clear and _is_clear(samples):
            break
    return [tuple(ones) for ones in samples]


def _is_clear(samples: Sequence[Sequence[float]]) -> bool:
    """Whether the fastest of several is faster than each other, all comparisons together at the confidence `CLEAR`."""
    if len(samples) < 2 or len(samples[0]) < SMALLEST_COUNT:
        return False
    fastest = min(range(len(samples)), key=lambda index: statistics.fmean(map(math.log, samples[index])))
    confidence = 1 - (1 - CLEAR) / (len(samples) - 1)
    others = (other for index, other in enumerate(samples) if index != fastest)
    return all(paired_log_ratio(samples[fastest], other, confidence)[2] < 0 for other in others)


def _block_length(take: Take, policy: Policy, clock: Clock, at: Callable[[int], None], index: int) -> int:
    """Executions in a block, so that all blocks of one candidate take about `sampling_seconds`; 1 to 25."""
    at(index)
    typical = statistics.median(warm_up(take, policy, clock))
    share = policy.sampling_seconds / max(policy.confirm_blocks, 1)
    return max(1, min(25, math.floor(share / max(typical, 1e-9)) - 1))
