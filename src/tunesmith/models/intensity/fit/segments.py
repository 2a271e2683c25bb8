"""Finds the exact best cut points along a metric, by dynamic programming over the products in the metric's order.

The recurrence is by Fisher (Journal of the American Statistical Association 53, 1958) and Bellman (Communications of
the ACM 4, 1961): the best k buckets up to a product are the best k - 1 buckets up to an earlier product, and a last
bucket.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .losses import Floats, SummedLoss

_MOST_SUMS = 1 << 20
"""The most numbers in the sums of buckets whose costs are computed at once, unless the buckets of one end have more."""


@dataclass(frozen=True, slots=True)
class Segmentation:
    """Ascending cut points, the decision of each bucket, and the total loss.

    A product whose value equals a cut point is beyond the cut point.
    """

    cuts: tuple[float, ...]
    decisions: tuple[float, ...]
    loss: float

    def buckets(self, values: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The bucket of each value, counted from 0."""
        return bucket_numbers(self.cuts, values)

    def decided(self, values: Floats) -> Floats:
        """The decision for each value."""
        return np.array(self.decisions)[self.buckets(values)]


def bucket_numbers(cuts: Sequence[float], values: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of the bucket of each value: how many of the ascending cut points are at or below the value."""
    return np.searchsorted(np.array(cuts), values, side="right").astype(np.int64)


def segmentations(
    values: Floats,
    loss: SummedLoss,
    most_buckets: int,
    *,
    weights: Floats | None = None,
    pins: Sequence[float] = (),
    most_boundaries: int | None = None,
    least_products: int = 1,
) -> dict[int, Segmentation]:
    """The best segmentation for each number of buckets up to `most_buckets`. Impossible numbers are left out.

    `values` has the metric of each product. Every segmentation has the cut points `pins`. With `most_boundaries`, only
    so many quantiles of the products are considered as cut points; otherwise every gap between two values is
    considered. A bucket has at least `least_products` products. Raises ValueError for a pin without a product on one of
    its sides, and for two pins without a product between them.
    """
    weights = np.ones(loss.count) if weights is None else weights
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    gaps = np.flatnonzero(sorted_values[1:] > sorted_values[:-1]) + 1
    pinned = _pinned_boundaries(sorted_values, pins)
    if most_boundaries is not None and len(gaps) > most_boundaries:
        gaps = gaps[np.unique(np.linspace(0, len(gaps) - 1, most_boundaries).round().astype(int))]
    ends = np.unique(np.concatenate([[0], gaps, list(pinned), [len(values)]])).astype(int)
    running = np.zeros((len(values) + 1, loss.sums(weights).shape[1]))
    np.cumsum(loss.sums(weights)[order], axis=0, out=running[1:])
    chains = _chains(running[ends], ends, loss, most_buckets, sorted(pinned), least_products)

    def cut(end: int) -> float:
        return pinned.get(int(end), 0.0) or separating(sorted_values[end - 1], sorted_values[end])

    return {
        count: Segmentation(
            tuple(map(cut, chain[1:-1])),
            tuple(loss.decisions(np.diff(running[list(chain)], axis=0)).tolist()),
            total,
        )
        for count, (chain, total) in chains.items()
    }


def separating(below: float, above: float) -> float:
    """A number above `below` and not above `above`, near their geometric mean, with as few digits as possible."""
    middle = math.sqrt(below) * math.sqrt(above) if below > 0 else (below + above) / 2
    for digits in range(3, 17):
        rounded = float(f"{middle:.{digits}g}")
        if below < rounded <= above:
            return rounded
    return float(above)


def _pinned_boundaries(sorted_values: Floats, pins: Sequence[float]) -> dict[int, float]:
    """Each pin by the number of products below it."""
    pinned = {int(np.searchsorted(sorted_values, pin, side="left")): float(pin) for pin in pins}
    if len(pinned) < len(pins) or not all(0 < end < len(sorted_values) for end in pinned):
        raise ValueError("a pinned cut point has no product on one of its sides")
    return pinned


def _chains(
    running: Floats,
    ends: np.ndarray[tuple[int], np.dtype[np.int64]],
    loss: SummedLoss,
    most: int,
    pinned: list[int],
    least: int,
) -> dict[int, tuple[tuple[int, ...], float]]:
    """For each number of buckets, the number of products before each boundary, and the loss."""
    last = len(ends) - 1
    best = np.full((most + 1, last + 1), np.inf)
    best[0, 0] = 0.0
    before = np.zeros((most + 1, last + 1), dtype=int)
    latest_pin = np.array([0, *pinned])[np.searchsorted(pinned, ends)]
    at_once = max(_MOST_SUMS // running.size, 1)
    for first in range(1, last + 1, at_once):
        stop = min(first + at_once, last + 1)
        sums = running[first:stop, None] - running[:stop]
        costs = loss.cost(sums.reshape(-1, running.shape[1])).reshape(sums.shape[:2])
        costs[ends[first:stop, None] - ends[:stop] < max(least, 1)] = np.inf
        costs[ends[:stop] < latest_pin[first:stop, None]] = np.inf
        for count in range(1, most + 1):
            totals = best[count - 1, :stop] + costs
            before[count, first:stop] = totals.argmin(axis=1)
            best[count, first:stop] = totals.min(axis=1)
    chains = {}
    for count in range(1, most + 1):
        if not math.isfinite(best[count, last]):
            continue
        chain = [last]
        for remaining in range(count, 0, -1):
            chain.append(int(before[remaining, chain[-1]]))
        numbers = tuple(int(ends[index]) for index in reversed(chain))
        assert all(first < second for first, second in pairwise(numbers))
        chains[count] = (numbers, float(best[count, last]))
    return chains
