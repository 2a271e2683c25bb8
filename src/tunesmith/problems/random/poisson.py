"""Poisson numbers from one random word each: an alias table, or a rounded normal number if the mean is large."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LARGEST_TABULATED_MEAN = 4000.0
"""The largest mean that has a table, as in rocRAND; for a larger mean a rounded normal number is exact enough."""

LARGEST_MEAN = 2.0**31
"""The limit of the mean: even with the largest deviation that a word can give, a value below it fits into 32 bits."""

_UNREACHED = 2.0**-34
"""Probability of each tail that is left out; a word of 32 bits cannot express less than 2^-32."""


@dataclass(frozen=True, slots=True)
class PoissonTable:
    """An alias table of `2^bits` columns; the first column stands for the number `base`.

    `pairs` is (2^bits, 2) in uint32. A word chooses a column by its top bits. Its other bits, shifted up, are compared
    with the column's threshold `pairs[column, 0]`: below the threshold the column is taken, otherwise the alias
    `pairs[column, 1]`. `bits` is 0 for a large mean, which has no table.
    """

    bits: int
    base: int
    pairs: NDArray[np.uint32]


@lru_cache(maxsize=64)
def poisson_table(mean: float) -> PoissonTable:
    """The table for a mean in (0, 2^31). The method is Walker's (1977), in Vose's form (1991)."""
    if mean > LARGEST_TABULATED_MEAN:
        return PoissonTable(0, int(mean), np.zeros((1, 2), np.uint32))
    from scipy.stats import poisson

    low, high = (int(poisson.ppf(tail, mean)) for tail in (_UNREACHED, 1 - _UNREACHED))
    low = 0 if mean < 32 else low
    bits = max(1, int(np.ceil(np.log2(high - low + 1))))
    probability = poisson.pmf(np.arange(low, low + 2**bits), mean)
    probability /= probability.sum()
    return PoissonTable(bits, low, _aliases(probability))


def _aliases(probability: NDArray[np.float64]) -> NDArray[np.uint32]:
    count = len(probability)
    left = probability * count
    pairs = np.empty((count, 2), np.uint32)
    small = [int(column) for column in np.flatnonzero(left < 1)]
    large = [int(column) for column in np.flatnonzero(left >= 1)]
    while small and large:
        poor, rich = small.pop(), large.pop()
        pairs[poor] = min(round(left[poor] * 2.0**32), 2**32 - 1), rich
        left[rich] -= 1 - left[poor]
        (small if left[rich] < 1 else large).append(rich)
    for column in small + large:
        pairs[column] = 2**32 - 1, column
    return pairs


def tabulated(table: PoissonTable, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The Poisson numbers that words give, by a table with `bits` > 0."""
    column = words >> np.uint32(32 - table.bits)
    rest = words << np.uint32(table.bits)
    threshold, alias = table.pairs[column, 0], table.pairs[column, 1]
    return np.asarray(np.uint32(table.base) + np.where(rest < threshold, column, alias), np.uint32)
