"""The doubt in a comparison of two candidates that were measured side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

RESOLUTION = 1e-9
"""Log ratios below this are rounding, not time: no clock resolves one part in a thousand million."""

DRIFT = 0.1
"""How far two times of one candidate may lie apart because the machine's speed changed between them, relative to the
shorter: twice what raises the anchor's alarm, which is given for each of the two."""


def paired_interval(differences: Sequence[float], confidence: float) -> tuple[float, float]:
    """Interval of the mean of paired differences: mean -+ t s / sqrt(n) with n - 1 degrees of freedom.

    One pair says nothing about its own doubt, so its interval is everything.
    """
    # Imported here since SciPy takes longer to load than a command that needs no interval takes to run.
    from scipy.special import stdtrit

    count = len(differences)
    if count < 2:
        return -math.inf, math.inf
    mean = fmean(differences)
    half = float(stdtrit(count - 1, 0.5 + confidence / 2)) * stdev(differences) / math.sqrt(count)
    return mean - half, mean + half


def faster(challenger: Sequence[float], other: Sequence[float], confidence: float) -> bool:
    """Whether the challenger's log costs, paired block by block with the other's, are lower beyond doubt."""
    _, high = paired_interval([a - b for a, b in zip(challenger, other, strict=True)], confidence)
    return high < -RESOLUTION
