"""When is a time known well enough? Warm-up, sampling, racing, blocks: all over a function that takes one sample."""

from __future__ import annotations

import bisect
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunesmith.records import Estimate

from .job import Policy
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

ALIKE = 0.5
"""Parts of the noise that a policy allows: finalists that differ by no more need no further block, since whichever wins
nobody loses by it."""

BLOCKS_SHARE = 0.35
"""Of the time that a policy gives to sample a candidate, what the blocks of a finalist take together: it was sampled
before, and pairs tell finalists apart with fewer samples."""

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
    at: Callable[[int], None] = lambda index: None,
    until_clear: bool = False,
) -> list[tuple[float, ...]]:
    """`policy.confirm_blocks` samples of each, aligned: sample i of all comes from the same round of blocks. With
    `until_clear` fewer, but six, where each is slower than the fastest beyond any doubt, or as fast.

    In a round every candidate has one block of executions, in an order drawn anew for each round, so that neither
    drift nor a neighbour's leftovers favour anyone. A block's first execution is dropped and its median kept. `at` is
    told which candidate comes next.
    """
    order = random.Random(policy.seed)
    lengths = [_block_length(take, policy, at, index) for index, take in enumerate(takes)]
    samples: list[list[float]] = [[] for _ in takes]
    for _ in range(max(policy.confirm_blocks, SMALLEST_COUNT)):
        for index in order.sample(range(len(takes)), len(takes)):
            at(index)
            takes[index]()
            samples[index].append(statistics.median(takes[index]() for _ in range(lengths[index])))
        if until_clear and _is_clear(samples, ALIKE * policy.noise):
            break
    return [tuple(ones) for ones in samples]


def _is_clear(samples: Sequence[Sequence[float]], alike: float) -> bool:
    """Whether each but the fastest is slower, all comparisons together at the confidence `CLEAR`, or differs from it by
    no more than `alike`, relative."""
    if len(samples) < 2 or len(samples[0]) < SMALLEST_COUNT:
        return False
    fastest = min(range(len(samples)), key=lambda index: statistics.fmean(map(math.log, samples[index])))
    confidence = 1 - (1 - CLEAR) / (len(samples) - 1)
    for index, other in enumerate(samples):
        if index != fastest and paired_log_ratio(samples[fastest], other, confidence)[2] >= 0:
            _, low, high = paired_log_ratio(samples[fastest], other)
            if max(-low, high) > alike:
                return False
    return True


def _block_length(take: Take, policy: Policy, at: Callable[[int], None], index: int) -> int:
    """Executions in a block, so that all blocks of one candidate take about `BLOCKS_SHARE` of `sampling_seconds`; 1 to
    25. A finalist needs no warming up for that: it ran before, and each block drops its first execution."""
    at(index)
    take()
    typical = statistics.median(take() for _ in range(_WARM_UP_BLOCK))
    share = BLOCKS_SHARE * policy.sampling_seconds / max(policy.confirm_blocks, 1)
    return max(1, min(25, math.floor(share / max(typical, 1e-9)) - 1))
