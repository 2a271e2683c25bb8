"""Confidence intervals for the comparison of two candidates that were measured side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from tunesmith.records import student_quantile

RESOLUTION = 1e-9
"""Smaller log ratios are rounding errors: no clock resolves one part in a thousand million."""

DRIFT = 0.1
"""How far two times of one candidate may lie apart since the machine's speed changed between them, relative to the
shorter time. It is twice the drift that raises the anchor's alarm, once for each of the two times."""


def paired_interval(differences: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of the mean of paired differences: mean -+ t s / sqrt(n) with n - 1 degrees of freedom.

    A single pair has no scatter to estimate the interval from, so its interval is infinite.
    """
    count = len(differences)
    if count < 2:
        return -math.inf, math.inf
    mean = fmean(differences)
    # statistics.stdev is exact by fractions, which takes thirty times as long.
    variance = math.fsum((difference - mean) ** 2 for difference in differences) / (count - 1)
    half = student_quantile(count - 1, 0.5 + confidence / 2) * math.sqrt(variance / count)
    return mean - half, mean + half


def faster(challenger: Sequence[float], other: Sequence[float], confidence: float) -> bool:
    """Whether the challenger's log costs, paired block by block with the other's, are lower beyond doubt."""
    _, high = paired_interval([a - b for a, b in zip(challenger, other, strict=True)], confidence)
    return high < -RESOLUTION
