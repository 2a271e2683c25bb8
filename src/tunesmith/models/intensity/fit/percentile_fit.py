"""What the proposal of IREE's rule did: cut-offs at percentiles of intensity, and a straight line in each outer bucket.

Beside each R2 stands what R2 does not tell. Q2 is R2 of predictions that leave the predicted product out (Allen,
Technometrics 16, 1974). Leverage is how far a product's own value pulls the line to it. The bootstrap interval says
what other groups of products of the kind might have given.

Source of the method: IREE discussion 21506.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .bootstrap import ENDS, Interval, group_draws
from .losses import Floats

LOW, HIGH = 30.0, 80.0
"""Percentiles whose cut-offs give the proposal's two figures back on its 41 convolutions; its own are not published."""
LEAST_PRODUCTS = 3
"""Of a line that says anything: two points are always on one."""


@dataclass(frozen=True, slots=True)
class LineFit:
    """A straight line through `products` points, and how far to trust it. NaN stands for what cannot be computed.

    `r2_without_extremes` is R2 without the two products of highest intensity.
    """

    products: int
    slope: float
    intercept: float
    r2: float
    q2: float
    most_leverage: float
    r2_without_extremes: float
    r2_interval: Interval


@dataclass(frozen=True, slots=True)
class PercentileFit:
    """The cut-offs, and the lines at or below the lower and above the higher one."""

    low_cut: float
    high_cut: float
    low: LineFit
    high: LineFit


def percentile_fit(
    intensities: Floats,
    works: Floats,
    groups: Sequence[str],
    low: float = LOW,
    high: float = HIGH,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> PercentileFit:
    """Fit `works`, elements of D a work-group computes, to intensities, in the buckets outside of two percentiles.

    Intervals draw `groups`, a word for each product. Raises ValueError for fewer than three products in a bucket.
    """
    low_cut, high_cut = (float(cut) for cut in np.percentile(intensities, [low, high]))
    names = np.array(groups)
    lines = (
        line_fit(intensities[part], works[part], names[part].tolist(), resamples, seed)
        for part in (intensities <= low_cut, intensities > high_cut)
    )
    return PercentileFit(low_cut, high_cut, *lines)


def line_fit(x: Floats, y: Floats, groups: Sequence[str], resamples: int, seed: int) -> LineFit:
    """Least squares of y on x. Raises ValueError for fewer than three points."""
    if len(x) < LEAST_PRODUCTS:
        raise ValueError(f"{len(x)} products for a line, {LEAST_PRODUCTS} are needed")
    count, spread = len(x), float(((x - x.mean()) ** 2).sum())
    slope, intercept = _line(x, y)
    errors = y - intercept - slope * x
    leverage = 1 / count + (x - x.mean()) ** 2 / spread if spread > 0 else np.full(count, 1 / count)
    total = float(((y - y.mean()) ** 2).sum())
    left_out = errors / np.where(leverage < 1, 1 - leverage, np.nan)
    inner = np.argsort(x, kind="stable")[:-2]
    return LineFit(
        count,
        slope,
        intercept,
        _r2(x, y),
        1 - float((left_out**2).sum()) / total if total > 0 else float("nan"),
        float(leverage.max()),
        _r2(x[inner], y[inner]),
        _interval(x, y, groups, resamples, seed),
    )


def _interval(x: Floats, y: Floats, groups: Sequence[str], resamples: int, seed: int) -> Interval:
    """Of R2, where groups are drawn with replacement; draws of a single intensity are left out."""
    draws = (weights.astype(int) for weights in group_draws(groups, resamples, seed))
    drawn = [_r2(np.repeat(x, counts), np.repeat(y, counts)) for counts in draws]
    known = np.array([value for value in drawn if np.isfinite(value)])
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, ENDS)
    return float(low), float(high)


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    centred = x - x.mean()
    spread = float((centred**2).sum())
    slope = float((centred * y).sum()) / spread if spread > 0 else 0.0
    return slope, float(y.mean()) - slope * float(x.mean())


def _r2(x: Floats, y: Floats) -> float:
    total = float(((y - y.mean()) ** 2).sum())
    if len(x) < LEAST_PRODUCTS or total <= 0 or not np.ptp(x) > 0:
        return float("nan")
    slope, intercept = _line(x, y)
    return 1 - float(((y - intercept - slope * x) ** 2).sum()) / total
