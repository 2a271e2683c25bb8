"""What a right generator does in all but one of so many cases: deviations in units of the standard error, p-values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Reals = NDArray[np.float64]
Words = NDArray[np.uint32]

FARTHEST = 5.0
"""Standard errors. A right generator goes beyond in one comparison of 1.7 million."""
RAREST = 1e-4
"""Least p-value. A right generator falls below in one test of 10,000; with seeds fixed it does so always or never."""

COUNTED_TOGETHER = 255
"""Words whose ones at a place are counted in one byte."""

NORMAL = (0, 1, 0, 3, 0, 15, 0, 105)
UNIFORM = tuple(0.5**k / (k + 1) if k % 2 == 0 else 0 for k in range(1, 9))
"""Central moments 1 to 8, of the standard normal distribution, and of the uniform one between 0 and 1."""


def moments_off(deviations: Reals, moments: Sequence[float]) -> Reals:
    """Four numbers of standard errors, for mean, variance, skewness and kurtosis.

    `deviations` are taken from the true mean, so that the average of their power k has the exact standard error
    sqrt((m[2k] - m[k]^2) / n).
    """
    squares = deviations * deviations
    found = np.array([np.mean(power) for power in (deviations, squares, squares * deviations, squares * squares)])
    expected = np.array(moments[:4])
    error = np.sqrt((np.array([moments[2 * k - 1] for k in range(1, 5)]) - expected**2) / deviations.size)
    return np.asarray((found - expected) / error)


def kolmogorov_smirnov(values: Reals, distribution_function: Callable[[Reals], Reals]) -> tuple[float, float]:
    """The largest distance between the values' distribution function and the given one, and its p-value as there are
    ever more values. As `scipy.stats.ks_1samp`, which sorts twice."""
    probabilities = distribution_function(np.sort(values))
    steps = np.arange(values.size + 1) / values.size
    distance = float(max(np.max(steps[1:] - probabilities), np.max(probabilities - steps[:-1])))
    return distance, float(stats.kstwobign.sf(distance * np.sqrt(values.size)))


def chi_square(found: NDArray[np.integer], expected: Reals) -> float:
    """p-value. Neighbouring cells come together until each has 20 expected, where Pearson's statistic is one."""
    cuts, kept = [0], 0.0
    for cell, mean in enumerate(expected.tolist()):
        if kept >= 20:
            cuts.append(cell)
            kept = 0.0
        kept += mean
    if kept < 20:
        cuts.pop()
    return float(stats.chisquare(np.add.reduceat(found, cuts), np.add.reduceat(expected, cuts)).pvalue)


def correlation(x: Reals, y: Reals, mean: float, variance: float) -> float:
    """Standard errors by which the products of two samples' deviations are off zero."""
    return float(np.mean((x - mean) * (y - mean)) / variance * np.sqrt(x.size))


def bits_off(words: Words, probabilities: Reals) -> Reals:
    """(32,) standard errors by which the numbers of ones are off, the lowest bit first."""
    rows = np.zeros((COUNTED_TOGETHER, -(-words.size // COUNTED_TOGETHER)), np.uint32)
    rows.reshape(-1)[: words.size] = words
    ones = np.empty(32)
    for bit in range(8):
        bit_of_each_byte = rows >> np.uint32(bit) & np.uint32(0x01010101)
        four_counts = bit_of_each_byte.sum(axis=0, dtype=np.uint32).astype("<u4").view(np.uint8)
        ones[bit::8] = four_counts.reshape(-1, 4).sum(axis=0)
    return np.asarray((ones - words.size * probabilities) / np.sqrt(words.size * probabilities * (1 - probabilities)))
