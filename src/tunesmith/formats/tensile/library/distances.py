"""How far a problem is from a row of a table, by the distances that a library logic may name.

Keys are (free size of A, free size of B, summed size), in elements. Each distance is a number without a unit, smaller
is nearer. Source: ROCm/Tensile, `Distance.hpp`, whose arithmetic is repeated to the rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from .records import Distance

Key = tuple[int, ...]
EDGE = 32768
"""The size up to which GridBased looks for the next larger grid point; beyond it, for the nearest."""


def euclidean(asked: Key, row: Key) -> float:
    """The sum of squared differences. No root is taken."""
    return _sum(float(a - b) ** 2 for a, b in zip(asked, row, strict=True))


def manhattan(asked: Key, row: Key) -> float:
    """The sum of differences."""
    return float(sum(abs(a - b) for a, b in zip(asked, row, strict=True)))


def ratio(asked: Key, row: Key) -> float:
    """1 plus the sum of the logarithms of the sizes' ratios."""
    total = 1.0
    for a, b in zip(asked, row, strict=True):
        total += abs(math.log(a / b))
    return total


def jensen_shannon(asked: Key, row: Key) -> float:
    """The Jensen-Shannon divergence of the sizes as shares of their sums: the aspect ratio counts, the volume does
    not."""
    p, q = _shares(asked), _shares(row)
    middle = [0.5 * (a + b) for a, b in zip(p, q, strict=True)]
    return 0.5 * _divergence(p, middle) + 0.5 * _divergence(q, middle)


def grid_based(asked: Key, row: Key) -> float:
    """How well a grid point covers the problem in M and N, plus less than one for the difference in K."""
    (m, n, k), (row_m, row_n, row_k) = (key[:3] for key in (asked, row))
    steps_m = math.ceil(m / row_m) if m <= EDGE else 1
    steps_n = math.ceil(n / row_n) if n <= EDGE else 1
    if m <= EDGE and n <= EDGE:
        covered = m * n / (float(steps_m) * row_m * steps_n * row_n)
        distance = _rounded(100 * steps_m * steps_n / covered**2)
    else:
        distance = _rounded(10000 * steps_m * steps_n * (float(m - row_m) ** 2 + float(n - row_n) ** 2) ** 0.5)
    return distance + abs(row_k - k) / (row_k + k * 8.0)


DISTANCES: dict[Distance, Callable[[Key, Key], float]] = {
    Distance.EUCLIDEAN: euclidean,
    Distance.MANHATTAN: manhattan,
    Distance.RATIO: ratio,
    Distance.JSD: jensen_shannon,
    Distance.GRID: grid_based,
}


def can_be_nearer(distance: Distance, asked: Key, row: Key, best: float) -> bool:
    """Whether a row may be nearer than `best`, judged by its first size alone: the search goes outwards from the
    problem's own first size, and ends at the first row that cannot."""
    if distance is Distance.EUCLIDEAN:
        return float(asked[0] - row[0]) ** 2 < best or asked == row
    if distance is Distance.MANHATTAN:
        return abs(asked[0] - row[0]) < best or asked == row
    if distance is Distance.JSD:
        p, q = _shares(asked)[0], _shares(row)[0]
        middle = 0.5 * (p + q)
        return 0.5 * (p * math.log(p / middle)) + 0.5 * (q * math.log(q / middle)) < best or asked == row
    return True


def _shares(key: Key) -> tuple[float, ...]:
    total = _sum(float(size) for size in key)
    return tuple(size / total for size in key)


def _divergence(p: tuple[float, ...], q: list[float]) -> float:
    return _sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def _sum(terms: Iterable[float]) -> float:
    """The sum from left to right, each partial sum rounded; `sum` may be more exact than that."""
    total = 0.0
    for term in terms:
        total += term
    return total


def _rounded(number: float) -> float:
    """The nearest whole number; a half is rounded up."""
    low = math.floor(number)
    return float(low + (number - low >= 0.5))
