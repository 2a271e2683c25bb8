"""Where a policy begins: the published seeds, by architecture, operation and size of the product.

Source: the seed tables in IREE's `ConfigUtils.cpp` and `KnownTargets.cpp` (b48a5955, Apache-2.0 with LLVM exceptions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tunesmith.models.intensity.published import Bucket


@dataclass(frozen=True, slots=True)
class TileSeed:
    """A budget for a work-group: so many sub-groups, each with `tiles` unit tiles of D, and `k_tiles` unit tiles along
    K; `k_bits`, where it is not 0, are the bits along K of each operand, and count before `k_tiles`."""

    sub_groups: int
    tiles: int
    k_tiles: int
    k_bits: int = 0

    def __str__(self) -> str:
        depth = f"{self.k_bits} bits" if self.k_bits else f"{self.k_tiles} tiles"
        return f"{self.sub_groups} sub-groups x {self.tiles} tiles, {depth} along K"

    def tiles_along_k(self, element_bytes: int, unit_k: int) -> int:
        """Unit tiles along K, for elements of so many bytes."""
        return max(1, self.k_bits // (8 * element_bytes * unit_k)) if self.k_bits else self.k_tiles


TRIP_COUNT_SEEDS = {Bucket.SMALL: TileSeed(4, 4, 8, 1024), Bucket.LARGE: TileSeed(4, 16, 4, 512)}
"""Of the old rule; its bits along K count before its tiles."""


class Workload(StrEnum):
    """What the published tables tell apart. The kernels here compute GEMM; the others wait for theirs."""

    GEMM = "GEMM"
    SCALED_GEMM = "scaled GEMM"
    CONVOLUTION = "convolution"


Seeds = Mapping[Bucket, TileSeed]


def _seeds(small: TileSeed, medium: TileSeed, large: TileSeed) -> Seeds:
    """Very large products have the seed of large ones."""
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
"""By generation; what a generation lacks is as in `DEFAULT`."""

GENERATIONS = {"gfx950": "CDNA4", "gfx1200": "RDNA4", "gfx1201": "RDNA4"}
BOOSTED_TILES, LEAST_UTILISATION = 32, 0.5
"""Of CDNA4's large GEMMs: the unit tiles that they are raised to, and the share of its last wave that a grid fills."""


def generation_of(architecture: str) -> str:
    """`CDNA4`, `RDNA4`, or `DEFAULT` for all others."""
    return GENERATIONS.get(architecture.split(":")[0], DEFAULT)


def published_seed(architecture: str, workload: Workload, bucket: Bucket) -> TileSeed:
    """The published seed for a chip, an operation and a size."""
    own = SEEDS.get((generation_of(architecture), workload))
    return (own or SEEDS[DEFAULT, workload])[bucket]
