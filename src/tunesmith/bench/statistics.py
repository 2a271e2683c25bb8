"""Statistics of a few timings: medians with intervals, paired ratios, drift. Pure functions."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from operator import truediv

from tunesmith.records import Estimate, student_quantile

CONFIDENCE = 0.95

SMALLEST_COUNT = 6
"""Fewer samples have no distribution-free 95 % interval of the median: all n lie on one side of it with probability
2 x 2^-n, which is 3 % for n = 6 and 6 % for n = 5."""

DRIFT_ALARM = 0.05
"""A change of the anchor that is worth an alarm, relative to its first time."""


def median_interval(samples: Sequence[float]) -> Estimate:
    """Median and its 95 % interval by order statistics. The samples must be independent; any distribution will do.

    The number of samples below the true median is Binomial(n, 1/2), so the interval from the d-th smallest to the
    d-th largest misses it with probability 2 P(Binomial(n, 1/2) < d); d is the largest that keeps this within 5 %.
    With fewer than six samples, see `count`, the interval is their whole range and covers the median only with
    probability 1 - 2^(1-n). ValueError without samples.

    Source: W. J. Conover, Practical Nonparametric Statistics, section 3.2.
    """
    if not samples:
        raise ValueError("no samples, no median")
    ordered = sorted(samples)
    count = len(ordered)
    rank = interval_rank(count)
    return Estimate(statistics.median(ordered), ordered[rank - 1], ordered[count - rank], count)


@cache
def interval_rank(count: int) -> int:
    """d of `median_interval` for `count` samples, at least 1."""
    if count >= 1000:
        # Normal approximation of the binomial; it is at most one rank below the exact one.
        return math.floor(count / 2 - 1.96 * math.sqrt(count) / 2)
    allowed = (1 - CONFIDENCE) / 2 * 2.0**count
    at_most = accumulate(math.comb(count, below) for below in range(count))
    return max(bisect.bisect_right(list(at_most), allowed), 1)


def relative_half_width(estimate: Estimate) -> float:
    """Half the interval over the median. `Policy.noise` is compared with it."""
    return (estimate.high - estimate.low) / 2 / estimate.seconds


def paired_log_ratio(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """Mean of log(a[i] / b[i]) with its interval (mean, low, high); negative if a is faster.

    Both times of a pair share the disturbances (clocks, temperature, a neighbour), so their ratio is steadier than each
    time. The interval is Student's with n - 1 degrees of freedom, in the logarithm, so that a/b and b/a agree.
    ValueError for sequences of different lengths or fewer than two pairs.
    """
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"paired samples come in equal numbers and at least two pairs, not {len(a)} and {len(b)}")
    logs = [math.log(ratio) for ratio in map(truediv, a, b)]
    mean = statistics.fmean(logs)
    # statistics.stdev is exact by fractions, which takes thirty times as long.
    squares = math.fsum((log - mean) ** 2 for log in logs)
    error = math.sqrt(squares / (len(logs) - 1) / len(logs))
    reach = student_quantile(len(logs) - 1, (1 + confidence) / 2) * error
    return mean, mean - reach, mean + reach


@dataclass(frozen=True, slots=True)
class Drift:
    """How an anchor's time changed since its first measurement: `ratio` is the time now over the time then."""

    ratio: float
    alarm: bool


def drift(reference: Estimate, now: Estimate) -> Drift:
    """Compare an anchor with its first measurement.

    There is an alarm if the intervals are disjoint and the change exceeds 5 %. The first condition excludes noise, the
    second changes that are real but too small to matter.
    """
    ratio = now.seconds / reference.seconds
    disjoint = now.low > reference.high or now.high < reference.low
    return Drift(ratio, disjoint and abs(ratio - 1) > DRIFT_ALARM)
