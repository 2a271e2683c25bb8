"""IREE's published rules for the size of a product: by trip count until August 2025, by arithmetic intensity since.

Sources: `computeGemmCutoffsForAI` in IREE's `ConfigUtils.cpp`, the seeds of `ConfigUtils.cpp` and `KnownTargets.cpp`
(b48a5955, Apache-2.0 with LLVM exceptions); discussion 21506 for what led there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .metrics import Product


class Bucket(StrEnum):
    """How large a product is, for a rule with a seed for each."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    VERY_LARGE = "very large"


TRIP_COUNT_MOST = 512 * 512
"""Elements of a result up to which the old rule calls a product small."""


def trip_count_bucket(product: Product) -> Bucket:
    """The old rule, by M N alone: small or large."""
    return Bucket.SMALL if product.mn <= TRIP_COUNT_MOST else Bucket.LARGE


@dataclass(frozen=True, slots=True)
class CutOffs:
    """FLOP per element: up to `small` a product is small, from `large` and `very_large` on that."""

    small: float
    large: float
    very_large: float

    @staticmethod
    def of_ridge(ridge: float) -> CutOffs:
        """`ridge` in FLOP per byte, as IREE takes it, although the cut-offs are in FLOP per element."""
        return CutOffs(0.05 * ridge, 5 * ridge, 22 * ridge)

    def bucket(self, intensity: float) -> Bucket:
        """`intensity` in FLOP per element."""
        if intensity <= self.small:
            return Bucket.SMALL
        if intensity >= self.very_large:
            return Bucket.VERY_LARGE
        return Bucket.LARGE if intensity >= self.large else Bucket.MEDIUM


WITHOUT_CHIP = CutOffs(1, 1000, 7000)
"""What IREE takes where it knows neither a chip's arithmetic nor its memory."""


def intensity_bucket(product: Product, ridge: float | None) -> Bucket:
    """The new rule. Intensity is rounded down to a whole number, as IREE's integers do; a ridge that nobody knows is
    None."""
    cut_offs = WITHOUT_CHIP if ridge is None else CutOffs.of_ridge(ridge)
    return cut_offs.bucket(2 * product.mnk // (product.mn + product.n * product.k + product.m * product.k))
