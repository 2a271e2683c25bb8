"""The fit of IREE's proposal: cut-offs at percentiles of intensity, and a straight line in each outer bucket.

Each R2 is reported with figures that R2 hides. Q2 is the R2 of predictions that leave the predicted product out (Allen,
Technometrics 16, 1974). Leverage is how far a product's own value pulls the line towards it. The bootstrap interval
shows what other groups of such products might have given.

Source of the method: IREE discussion 21506.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .bootstrap import ENDS, Interval, drawn_counts, group_numbers
from .cross_validation import Integers
from .losses import Floats

LOW, HIGH = 30.0, 80.0
"""Percentiles whose cut-offs reproduce the proposal's two figures on its 41 convolutions. The proposal's own
percentiles are not published."""
LEAST_PRODUCTS = 3
"""The fewest products of a meaningful line: two points are always on a line."""


@dataclass(frozen=True, slots=True)
class LineFit:
    """A straight line through `products` points, and how far to trust it. NaN means that a figure cannot be computed.

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
    """The two cut-offs, the line at or below the lower cut-off (`low`), and the line above the higher one (`high`)."""

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
    """Fits `works`, the elements of D that a work-group computes, to `intensities`, in the two buckets outside the
    percentiles.

    `groups` names the group of each product, for the intervals. Raises ValueError for fewer than three products in a
    bucket.
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
    """The interval of R2, for groups drawn with replacement. Draws with a single intensity are left out."""
    numbers = group_numbers(groups)
    counts = drawn_counts(int(numbers.max()) + 1, resamples, seed)
    # Sums of each group make those of a draw. Around the means, differences of sums lose no digits.
    dx, dy = x - x.mean(), y - y.mean()
    sums = np.stack([np.bincount(numbers, column) for column in (np.ones_like(x), dx, dy, dx * dx, dx * dy, dy * dy)])
    n, sum_x, sum_y, sum_xx, sum_xy, sum_yy = sums @ counts.T
    varies = (n >= LEAST_PRODUCTS) & _varies(x, numbers, counts) & _varies(y, numbers, counts)
    if not varies.any():
        return float("nan"), float("nan")
    covariance, spread, total = sum_xy - sum_x * sum_y / n, sum_xx - sum_x**2 / n, sum_yy - sum_y**2 / n
    low, high = np.percentile(covariance[varies] ** 2 / (spread * total)[varies], ENDS)
    return float(low), float(high)


def _varies(values: Floats, numbers: Integers, counts: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether more than one value was drawn, for each draw."""
    least, most = np.full(counts.shape[1], np.inf), np.full(counts.shape[1], -np.inf)
    np.minimum.at(least, numbers, values)
    np.maximum.at(most, numbers, values)
    ends = np.where(counts > 0, most, -np.inf).max(axis=1), np.where(counts > 0, least, np.inf).min(axis=1)
    return np.asarray(ends[0] > ends[1])


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
