"""When is a time known well enough? Warm-up, sampling, racing and blocks, over a function that takes one sample."""

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

Sampler = Callable[[], float]
"""Executes a plan and returns the device seconds of one execution."""
Clock = Callable[[], float]
"""Seconds of wall time from any origin."""

HOPELESS = 3.0
"""A candidate that never came within this factor of what has lost, by the best's upper bound, is not sampled after its
warm-up. The largest disturbance that we have seen, a busy neighbour, is a factor of 1.9."""

RACE_SLACK = 0.2
"""A race stops a candidate only if it is slower than a rival by this much more than their intervals say: the two were
timed at different moments, and the machine's speed may change between them. Of six equal candidates on a machine whose
speed scatters by 5 %, the slowest takes over 1.2 times the fastest in 5 % of the cases (studentised range)."""

CLEAR = 0.999
"""Confidence at which finalists are told apart before their last block. A confidence this high does not spoil the final
interval (Haybittle and Peto's rule for looking at a trial before its end, British Journal of Cancer 34, 1976, 585)."""

GAP_SHARE = 0.5
"""A candidate outside of a race whose interval lies above a rival's upper bound has lost at this size. By how much
matters only for tables and means over sizes, so its median need be known within the policy's noise and this share of
the gap. Whatever may still win is measured again in blocks. To warm up less, it must have lost as in a race
(`RACE_SLACK`), since the first times of a good candidate may be slow."""

ALIKE = 0.5
"""Share of the noise that a policy allows. Finalists that differ by no more need no further block, since the choice
between them does not matter."""

BLOCKS_SHARE = 0.35
"""Share of a policy's `sampling_seconds` that all blocks of a finalist take together. The finalist was sampled before,
and pairs tell finalists apart with fewer samples."""

_WARM_UP_BLOCK = 3


@dataclass(frozen=True, slots=True)
class Timed:
    """Samples in seconds. `raced` says that sampling stopped early, since the candidate is provably slower."""

    samples: tuple[float, ...]
    raced: bool = False

    @property
    def estimate(self) -> Estimate:
        return median_interval(self.samples)


class _Stopwatch:
    """Seconds since it was made: wall or device seconds, whichever is more (a fake device takes no wall time)."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._since, self._device = clock, clock(), 0.0

    def run(self, sampler: Sampler) -> float:
        seconds = sampler()
        self._device += seconds
        return seconds

    @property
    def spent(self) -> float:
        return max(self._clock() - self._since, self._device)


def lost_above(rival: float) -> float:
    """Seconds above which a candidate has lost; `rival` is the upper end of the rival's interval in seconds."""
    return rival * (1 + RACE_SLACK)


def time_plan(sampler: Sampler, policy: Policy, race_above: float, clock: Clock, rival: float = math.inf) -> Timed:
    """Warm up, then sample until the median is known as well as the policy asks.

    Sampling ends when half the interval is within `noise` of the median, when the time or the number of samples is
    used up, or when the interval's lower end exceeds `race_above` (infinite: no race). There are at least six samples,
    so that there is an interval; a hopeless candidate has its warm-up times only. `rival` is the upper end of another
    candidate's interval: a candidate that lies far above it is sampled less (`GAP_SHARE`), and its warm-up times count.
    It has not raced, since its measurement is complete.
    """
    warm = warm_up(sampler, policy, clock, rival)
    if min(warm) > HOPELESS * min(race_above, lost_above(rival)):
        return Timed(tuple(warm), raced=race_above < math.inf)
    watch = _Stopwatch(clock)
    # Samples of a loser need no better warm-up than that these times agree with each other.
    counted = warm if min(warm) > lost_above(rival) else []
    samples = list(counted)
    ordered = sorted(samples)
    while len(samples) < policy.maximum_samples or len(samples) < SMALLEST_COUNT:
        samples.append(watch.run(sampler))
        bisect.insort(ordered, samples[-1])
        if len(samples) < max(policy.minimum_samples, SMALLEST_COUNT):
            continue
        low = ordered[interval_rank(len(ordered)) - 1]
        if low > race_above:
            return Timed(tuple(samples), raced=True)
        if counted and low <= lost_above(rival):
            samples, counted = samples[len(counted) :], []
            ordered = sorted(samples)
            continue
        if relative_half_width(median_interval(ordered)) <= _noise_allowed(policy, low / rival):
            break
        if watch.spent > policy.sampling_seconds:
            break
    return Timed(tuple(samples))


def _noise_allowed(policy: Policy, ratio: float) -> float:
    """How well a candidate's median must be known, relative, if it takes at least `ratio` times as long as it may."""
    return policy.noise + GAP_SHARE * max(0.0, ratio - 1)


def warm_up(sampler: Sampler, policy: Policy, clock: Clock, rival: float = math.inf) -> list[float]:
    """Execute until two successive medians of three agree within the noise, or the time to warm up is used up.

    The first execution is dropped: it may pay for code loading and first touches. Returns the other times, which are at
    least two. With a `rival`, those of a loser need not agree as well (`GAP_SHARE`), and three do for a hopeless one.
    """
    watch = _Stopwatch(clock)
    watch.run(sampler)
    times: list[float] = []
    previous = math.inf
    while watch.spent < policy.warm_up_seconds or len(times) < 2:
        times.append(watch.run(sampler))
        if len(times) % _WARM_UP_BLOCK == 0:
            if min(times) > HOPELESS * lost_above(rival):
                break
            block = statistics.median(times[-_WARM_UP_BLOCK:])
            if abs(block - previous) <= _noise_allowed(policy, min(times) / lost_above(rival)) * block:
                break
            previous = block
    return times


def interleave(
    samplers: Sequence[Sampler],
    policy: Policy,
    announce: Callable[[int], None] = lambda index: None,
    until_clear: bool = False,
    clock: Clock = lambda: 0.0,
) -> list[tuple[float, ...]]:
    """`policy.confirm_blocks` samples of each candidate, aligned: sample i of each comes from the same round of blocks.

    With `until_clear` the rounds end early, after at least six, once every candidate but the fastest is clearly slower,
    or as fast. In a round every candidate has one block of executions. The order is drawn anew for each round, so that
    neither drift nor another candidate's leftovers favour a candidate. A block's first execution is dropped, and the
    median of the others is its sample. `announce` is called with the index of the candidate that comes next. `clock`
    lets the length of blocks include the host's part of a sample.
    """
    order = random.Random(policy.seed)
    lengths = []
    for index, sampler in enumerate(samplers):
        announce(index)
        lengths.append(_block_length(sampler, policy, clock))
    samples: list[list[float]] = [[] for _ in samplers]
    for _ in range(max(policy.confirm_blocks, SMALLEST_COUNT)):
        for index in order.sample(range(len(samplers)), len(samplers)):
            announce(index)
            samplers[index]()
            samples[index].append(statistics.median(samplers[index]() for _ in range(lengths[index])))
        if until_clear and _is_clear(samples, ALIKE * policy.noise):
            break
    return [tuple(series) for series in samples]


def _is_clear(samples: Sequence[Sequence[float]], alike: float) -> bool:
    """Whether every candidate but the fastest is slower, or differs from the fastest by no more than `alike`, relative.
    All comparisons together have the confidence `CLEAR`."""
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


def _block_length(sampler: Sampler, policy: Policy, clock: Clock) -> int:
    """Executions in a block, 1 to 25: all blocks of a candidate together take about `BLOCKS_SHARE` of
    `sampling_seconds`. A finalist needs no warm-up: it ran before, and each block drops its first execution."""

    def seconds() -> float:
        watch = _Stopwatch(clock)
        watch.run(sampler)
        return watch.spent

    sampler()
    typical = statistics.median(seconds() for _ in range(_WARM_UP_BLOCK))
    share = BLOCKS_SHARE * policy.sampling_seconds / max(policy.confirm_blocks, 1)
    return max(1, min(25, math.floor(share / max(typical, 1e-9)) - 1))
