"""The mapping of `PortBlasGemm` and `PortBlasCuda`: the algorithm follows from shape and device, the tile is WorkGroup
x WorkItem."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping, Pair, blocking_of, blockings, nearest_power

GPU_GROUPS: tuple[Pair, ...] = ((16, 16), (8, 8), (16, 8), (8, 16), (32, 8))
CPU_GROUPS: tuple[Pair, ...] = ((4, 4), (8, 8), (2, 4), (4, 8))
ITEMS: tuple[Pair, ...] = ((4, 4), (2, 2), (8, 2), (4, 8), (8, 4), (8, 8), (1, 1))
CPU_ITEMS: tuple[Pair, ...] = ((16, 4), (8, 4), (8, 8), (4, 4))
BATCH_TILE, BATCH_GROUP, BATCH_VECTOR = (4, 2), (8, 8), 4
"""For an interleaved batch: matrices of a work-item and work-items along the batch; the other sides of the work-group;
and the vector width along the batch."""
VECTOR_BYTES = 16
LEAST_LINE, MOST_LINE = 32, 128
TOP_TILE = (4, 4)
"""The blocks of tiles in which work-groups are ordered, so that consecutive work-groups share rows and columns. Used if
there are more tiles than compute units."""


class PortBlasMapping(FamilyMapping):
    """An interleaved batch has its own algorithm; K in parts needs `tall_skinny`. Otherwise GPUs stage blocks in local
    memory, and CPUs read blocks through their caches."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        gemm, is_cpu = situation.gemm, situation.target.kind == "CPU"
        if gemm.interleaved:
            return _interleaved(wish)
        algorithm = "tall_skinny" if wish.split > 1 else "non_local" if is_cpu else "local"
        group, item = blocking_of(wish, *_choices(is_cpu))
        wide = math.gcd(VECTOR_BYTES // situation.element_bytes, *item) if wish.is_wide else 1
        is_many = situation.product.tiles(group[0] * item[0], group[1] * item[1]) > situation.units
        return {
            "PortBlasAlgorithm": algorithm,
            "Vectorization": "partial" if wide > 1 else "none",
            "VectorSize": wide,
            "CacheLine": nearest_power(wish.depth * situation.element_bytes, LEAST_LINE, MOST_LINE),
            "WorkItem": item,
            "WorkGroup": (*group, 1),
            "TopTile": TOP_TILE if is_many else (1, 1),
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        is_cpu = situation.target.kind == "CPU"
        return blockings(*_choices(is_cpu), 64 // situation.element_bytes)


def _choices(is_cpu: bool) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    return (CPU_GROUPS, CPU_ITEMS) if is_cpu else (GPU_GROUPS, ITEMS)


def _interleaved(wish: TileWish) -> dict[str, Value]:
    item = min(ITEMS[:3], key=lambda item: abs(item[0] * item[1] - wish.elements / math.prod(BATCH_GROUP)))
    return {
        "PortBlasAlgorithm": "interleaved",
        "Vectorization": "partial",
        "VectorSize": BATCH_VECTOR,
        "WorkItem": item,
        "WorkGroup": (*BATCH_GROUP, 1),
        "BatchTile": BATCH_TILE,
    }
