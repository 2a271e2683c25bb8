"""The mapping of `BlockedGemm`: a block that fits the local memory; the family itself cuts D into blocks that fill the
device."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.kernels.gemm.opencl.blocks import PANELS
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping

VECTOR_BYTES = 64
COLUMNS = 6
"""Columns of the tile in registers: with two vectors of 32 bytes in each, a CPU with AVX2 has registers for them."""
BLOCK_ROWS, BLOCK_COLUMNS = 1024, (264, 60, COLUMNS)
"""Most rows of a block, and its most columns: the first number with which a useful depth fits the local memory."""
DEPTH, USEFUL_DEPTH = 320, 64
FEW, FEW_ROWS = 4, 512
"""So many columns of D at most are computed without copies of A, and the rows of their blocks."""


class BlockedMapping(FamilyMapping):
    """CacheBlocks as large as the local memory allows, or FewColumns where D has few of them and A lies along M. The
    family itself decides into how many blocks D is cut, so a wish decides nothing."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        gemm, rows = situation.gemm, VECTOR_BYTES // situation.element_bytes
        elements = situation.target.local_memory_bytes // situation.element_bytes
        if gemm.n <= FEW and not gemm.transpose_a:
            block = max(rows, min(FEW_ROWS, elements // FEW // rows * rows))
            few: dict[str, Value] = {"MacroTile": (block, FEW), "ThreadTile": (rows, FEW), "VectorWidth": rows}
            return {"Schedule": "FewColumns", **few}
        depths = {columns: min(DEPTH, elements // (columns + PANELS * rows)) for columns in BLOCK_COLUMNS}
        columns = next((columns for columns in BLOCK_COLUMNS if depths[columns] >= USEFUL_DEPTH), COLUMNS)
        return {
            "Schedule": "CacheBlocks",
            "MacroTile": (BLOCK_ROWS, columns),
            "ThreadTile": (rows, COLUMNS),
            "VectorWidth": rows,
            "DepthU": max(depths[columns], 1),
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return (TileWish(BLOCK_ROWS, BLOCK_COLUMNS[0], DEPTH, sub_groups=(1, 1)),)
