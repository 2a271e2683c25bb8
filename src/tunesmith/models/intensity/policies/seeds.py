"""The published seeds with which policies begin, by architecture, operation and size of the product.

Source: the seed tables in IREE's `ConfigUtils.cpp` and `KnownTargets.cpp` (b48a5955, Apache-2.0 with LLVM exceptions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tunesmith.models.intensity.published import Bucket


@dataclass(frozen=True, slots=True)
class TileSeed:
    """A budget for a work-group: `sub_groups`, each with `tiles` unit tiles of D, and `k_tiles` unit tiles along K. If
    `k_bits` is not 0, it is the number of bits along K of each operand and takes priority over `k_tiles`."""

    sub_groups: int
    tiles: int
    k_tiles: int
    k_bits: int = 0

    def __str__(self) -> str:
        depth = f"{self.k_bits} bits" if self.k_bits else f"{self.k_tiles} tiles"
        return f"{self.sub_groups} sub-groups x {self.tiles} tiles, {depth} along K"

    def tiles_along_k(self, element_bytes: int, unit_k: int) -> int:
        """Unit tiles along K for this element size; a unit tile has `unit_k` elements along K."""
        return max(1, self.k_bits // (8 * element_bytes * unit_k)) if self.k_bits else self.k_tiles


TRIP_COUNT_SEEDS = {Bucket.SMALL: TileSeed(4, 4, 8, 1024), Bucket.LARGE: TileSeed(4, 16, 4, 512)}
"""The seeds of the trip-count rule."""


class Workload(StrEnum):
    """The workloads of the published tables. Our kernels compute GEMM; the others are for kernels to come."""

    GEMM = "GEMM"
    SCALED_GEMM = "scaled GEMM"
    CONVOLUTION = "convolution"


Seeds = Mapping[Bucket, TileSeed]


def _seeds(small: TileSeed, medium: TileSeed, large: TileSeed) -> Seeds:
    """The seed of each bucket. Very large products have the seed of large products."""
    return {Bucket.SMALL: small, Bucket.MEDIUM: medium, Bucket.LARGE: large, Bucket.VERY_LARGE: large}


_SMALL = TileSeed(2, 2, 4, 2048)
_SMALL_CONVOLUTION = TileSeed(2, 2, 4, 1024)
DEFAULT = "default"
SEEDS: Mapping[tuple[str, Workload], Seeds] = {
    (DEFAULT, Workload.GEMM): _seeds(_SMALL, TileSeed(4, 8, 4, 2048), TileSeed(4, 16, 2, 512)),
    (DEFAULT, Workload.SCALED_GEMM): _seeds(_SMALL, TileSeed(8, 32, 4, 512), TileSeed(8, 32, 2, 512)),
    (DEFAULT, Workload.CONVOLUTION): _seeds(_SMALL_CONVOLUTION, TileSeed(8, 4, 4, 2048), TileSeed(8, 8, 2, 512)),
    ("RDNA4", Workload.GEMM): _seeds(_SMALL, TileSeed(4, 4, 4, 1024), TileSeed(8, 16, 4, 1024)),
    ("RDNA4", Workload.CONVOLUTION): _seeds(_SMALL_CONVOLUTION, TileSeed(8, 4, 4, 1024), TileSeed(8, 8, 4, 1024)),
}
"""The seeds by generation and workload. `DEFAULT` has those that a generation lacks."""

GENERATIONS = {"gfx950": "CDNA4", "gfx1200": "RDNA4", "gfx1201": "RDNA4"}
BOOSTED_TILES, LEAST_UTILISATION = 32, 0.5
"""For CDNA4: the unit tiles to which `boost` raises large GEMMs, and the utilisation below which `utilisation-guard`
acts."""


def generation_of(architecture: str) -> str:
    """The generation of an architecture: `CDNA4`, `RDNA4`, or `DEFAULT` for all others."""
    return GENERATIONS.get(architecture.split(":")[0], DEFAULT)


def published_seed(architecture: str, workload: Workload, bucket: Bucket) -> TileSeed:
    """The published seed for an architecture, a workload and a size class."""
    of_generation = SEEDS.get((generation_of(architecture), workload))
    return (of_generation or SEEDS[DEFAULT, workload])[bucket]
