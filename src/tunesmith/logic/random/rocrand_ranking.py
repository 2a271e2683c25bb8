"""Ranks launch shapes exactly as rocRAND's `select_best_config.py` (commit dc3656f1), to the last bit: see `rank`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.records import LaunchShape, RandomRow

from .decision import Scored
from .matrix import STATED_NOISE, RandomCase, SpeedRatio

ALLOWED = 1 - STATED_NOISE
"""The original calls a ratio below this a regression."""

INSERTION = 16
"""NumPy's quicksort sorts at most so many values by insertion sort."""


@dataclass(frozen=True)
class Ranking:
    """Shapes with their mean ratios in the original's order, and each shape's ratios in the order of distributions and
    types.

    A ratio is the speed of a row over the speed of the default's first row of the same distribution and type (NaN for a
    row without a speed).
    """

    shapes: tuple[Scored, ...]
    ratios: Mapping[LaunchShape, Sequence[SpeedRatio]]

    def regressing(self, shape: LaunchShape) -> list[SpeedRatio]:
        """The shape's ratios that the original calls regressions."""
        return [ratio for ratio in self.ratios[shape] if ratio.ratio < ALLOWED]


def rank(rows: Sequence[RandomRow], default: LaunchShape) -> Ranking:
    """Rank the shapes of one generator on one architecture; the ranking is empty if there is no ratio.

    The speed of each row is divided by the default's first row of the same distribution and type. A shape's score is
    the arithmetic mean of its rows' ratios, without rows that have no speed; aggregates and repeats count like any
    other row. The highest score wins. Distributions in which the default has no row are left out; there the original
    stops with an IndexError.
    """
    pairs: dict[tuple[str, str], list[RandomRow]] = defaultdict(list)
    for row in rows:
        pairs[row.pair].append(row)
    ratios: dict[LaunchShape, list[SpeedRatio]] = defaultdict(list)
    for _, pair in sorted(pairs.items()):
        reference = next((row.gigabytes_per_second for row in pair if row.shape == default), None)
        if reference is not None:
            for row in pair:
                ratio = _divide(row.gigabytes_per_second, reference)
                ratios[row.shape].append(SpeedRatio(RandomCase.of(row), ratio, ratio, ratio))
    means = [(shape, _mean([ratio.ratio for ratio in ratios[shape]])) for shape in sorted(ratios)]
    return Ranking(tuple(Scored(*means[index]) for index in descending([mean for _, mean in means])), ratios)


def _divide(speed: float, reference: float) -> float:
    """The quotient; infinite or NaN for a reference of zero, as in the original."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(speed) / np.float64(reference))


def _mean(ratios: Sequence[float]) -> float:
    """The mean as pandas computes it: NaN counts as zero in NumPy's pairwise sum, and is not counted."""
    values = np.array(ratios, np.float64)
    count = np.count_nonzero(~np.isnan(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(np.isnan(values), 0.0, values).sum() / np.float64(count))


def descending(values: Sequence[float]) -> list[int]:
    """The indices of the values, largest first, NaN last; equal values in the order in which pandas 1.5.3 leaves them.

    `sort_values(ascending=False)` reverses the values, sorts them with NumPy 1.24's quicksort, which is not stable
    beyond 16 values, and reverses the result. Newer NumPy sorts with vector instructions and may order ties otherwise.
    """
    kept = [index for index, value in enumerate(values) if value == value][::-1]
    missing = [index for index, value in enumerate(values) if value != value]
    order = _quicksort([values[index] for index in kept])
    return [kept[index] for index in order][::-1] + missing


def _quicksort(values: Sequence[float]) -> list[int]:
    """The indices of the values in ascending order, with equal values in the order of NumPy's scalar quicksort.

    The pivot is the median of three, both scans stop at equal values, and short parts are sorted by insertion. NumPy's
    fallback to heap sort only happens for inputs made against quicksort, and is left out.

    Source: Sedgewick's variant (Comm. ACM 21 (1978) 847) as used in NumPy's `npysort/quicksort.cpp`.
    """
    order = list(range(len(values)))

    def order_pair(low: int, high: int) -> None:
        if values[order[high]] < values[order[low]]:
            order[low], order[high] = order[high], order[low]

    waiting = [(0, len(values) - 1)]
    while waiting:
        left, right = waiting.pop()
        if right - left < INSERTION:
            # Insertion sort is stable, and so is Python's.
            order[left : right + 1] = sorted(order[left : right + 1], key=values.__getitem__)
            continue
        middle = (left + right) // 2
        order_pair(left, middle)
        order_pair(middle, right)
        order_pair(left, middle)
        split = _partition(values, order, left, middle, right)
        waiting += [(left, split - 1), (split + 1, right)]
    return order


def _partition(values: Sequence[float], order: list[int], left: int, middle: int, right: int) -> int:
    """Move smaller values before the middle's value and larger values behind it. Returns its new index."""
    pivot = values[order[middle]]
    up, down = left, right - 1
    order[middle], order[down] = order[down], order[middle]
    while True:
        up += 1
        while values[order[up]] < pivot:
            up += 1
        down -= 1
        while pivot < values[order[down]]:
            down -= 1
        if up >= down:
            break
        order[up], order[down] = order[down], order[up]
    order[up], order[right - 1] = order[right - 1], order[up]
    return up
