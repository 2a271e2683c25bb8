"""IREE's published rules for the size of a product: by trip count until August 2025, by arithmetic intensity since.

Sources: `computeGemmCutoffsForAI` in IREE's `ConfigUtils.cpp`, the seeds of `ConfigUtils.cpp` and `KnownTargets.cpp`
(b48a5955, Apache-2.0 with LLVM exceptions); the proposal is in discussion 21506.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .metrics import Product


class Bucket(StrEnum):
    """The size class of a product. A rule has a seed for each class."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    VERY_LARGE = "very large"


TRIP_COUNT_MOST = 512 * 512
"""The most elements of a result with which the old rule calls a product small."""


def trip_count_bucket(product: Product) -> Bucket:
    """The old rule, by M N alone: small or large."""
    return Bucket.SMALL if product.mn <= TRIP_COUNT_MOST else Bucket.LARGE


@dataclass(frozen=True, slots=True)
class CutOffs:
    """Intensities in FLOP per element: up to `small` a product is small, from `large` on large, and from `very_large`
    on very large."""

    small: float
    large: float
    very_large: float

    @staticmethod
    def of_ridge(ridge: float) -> CutOffs:
        """The cut-offs for a ridge in FLOP per byte. As in IREE, the cut-offs are nevertheless in FLOP per element."""
        return CutOffs(0.05 * ridge, 5 * ridge, 22 * ridge)

    def bucket(self, intensity: float) -> Bucket:
        """The bucket of an intensity in FLOP per element."""
        if intensity <= self.small:
            return Bucket.SMALL
        if intensity >= self.very_large:
            return Bucket.VERY_LARGE
        return Bucket.LARGE if intensity >= self.large else Bucket.MEDIUM


WITHOUT_CHIP = CutOffs(1, 1000, 7000)
"""IREE's cut-offs for a chip whose arithmetic and memory rates are unknown."""


def intensity_bucket(product: Product, ridge: float | None) -> Bucket:
    """The new rule. Intensity is rounded down to a whole number, as in IREE's integer arithmetic. `ridge` is None if
    unknown."""
    cut_offs = WITHOUT_CHIP if ridge is None else CutOffs.of_ridge(ridge)
    return cut_offs.bucket(2 * product.mnk // (product.mn + product.n * product.k + product.m * product.k))
