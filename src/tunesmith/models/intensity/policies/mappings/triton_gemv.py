"""The mapping of `TritonGemv`, for M = 1 or N = 1: a tile of the matrix has elements of D and steps along K."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping, nearest_power, parts

MOST_NUMBERS = 32
"""The most elements of a tile for each work-item: half of what the family allows, so that loads stay in flight."""
MOST_ROWS, MOST_DEPTH, MOST_WARPS, MOST_STAGES = 256, 2048, 8, 8


class TritonGemvMapping(FamilyMapping):
    """`GemvAlong` follows from the sizes. `GemvTile` is the wish's side along that dimension, and the wish's depth."""

    is_for_vectors = True

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        gemm = situation.gemm
        is_column = gemm.n == 1
        warps = nearest_power(wish.warps, 1, MOST_WARPS)
        rows = nearest_power(wish.m if is_column else wish.n, 1, MOST_ROWS)
        depth = nearest_power(wish.depth, 1, MOST_DEPTH)
        while rows * depth > MOST_NUMBERS * warps * situation.lanes and depth > 1:
            depth //= 2
        return {
            "GemvAlong": "M" if is_column else "N",
            "GemvTile": (rows, depth),
            "NumWarps": warps,
            "NumStages": max(2, min(wish.stages, MOST_STAGES)),
            "GlobalReadVectorWidth": _read_width(situation, is_column) if wish.is_wide else 1,
            "GlobalSplitU": parts(wish, -(-gemm.k // depth)),
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        tiles = ((16, 256), (8, 512), (4, 1024), (32, 128), (64, 64), (128, 32), (256, 16))
        along_m = situation.gemm.n == 1
        return tuple(
            TileWish(rows if along_m else 16, 16 if along_m else rows, depth, sub_groups=(4, 1))
            for rows, depth in tiles
        )


def _read_width(situation: PolicyInput, is_column: bool) -> int:
    """Elements of the widest load of the matrix. Only the matrix is read in vectors."""
    gemm = situation.gemm
    if is_column:
        extents = (gemm.k if gemm.transpose_a else gemm.m, gemm.lda, gemm.stride_a)
    else:
        extents = (gemm.n if gemm.transpose_b else gemm.k, gemm.ldb, gemm.stride_b)
    return math.gcd(16 // situation.element_bytes, *(extents if gemm.batch > 1 else extents[:2]))
