"""The mappings of `CudaSimtGemm` and `TiledGemm`, whose macro tile is WorkGroup x ThreadTile in local memory."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping, blocking_of, blockings, nearest_power, parts

GROUPS = ((16, 16), (8, 8), (16, 8), (8, 16), (32, 8), (8, 32))
ITEMS = ((4, 4), (8, 4), (4, 8), (8, 8), (2, 8), (8, 2), (2, 2))
LEAST_DEPTH, MOST_DEPTH = 8, 64
CANDIDATE_DEPTH = 16
LOADS_SIDE_BY_SIDE = (1, 2, 4, 8, 16)


class CudaSimtMapping(FamilyMapping):
    """WorkGroup, ThreadTile and DepthU set the tile. Shared memory holds one stage of the operands' tiles."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        group, item = blocking_of(wish, GROUPS, ITEMS)
        depth = nearest_power(wish.depth, LEAST_DEPTH, MOST_DEPTH)
        splits = parts(wish, -(-situation.gemm.k // depth))
        return {"WorkGroup": (*group, 1), "ThreadTile": item, "DepthU": depth, "GlobalSplitU": splits}

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return blockings(GROUPS, ITEMS, CANDIDATE_DEPTH)


class TiledMapping(FamilyMapping):
    """As `CudaSimtMapping`, with loads distributed evenly over the work-items (NumLoadsCoalesced, VectorWidth)."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        group, item = blocking_of(wish, GROUPS, ITEMS)
        depth = nearest_power(wish.depth, LEAST_DEPTH, MOST_DEPTH)
        tile = (group[0] * item[0], group[1] * item[1])
        widths = (4, 2, 1) if wish.is_wide else (1,)
        vector, loads = next(
            (
                (width, loads)
                for width in widths
                if item[0] % width == item[1] % width == 0 and width * situation.element_bytes <= 16
                if (loads := _coalesced_loads(tile, depth, group[0] * group[1], width, situation))
            ),
            (1, (1, 1)),
        )
        return {
            "WorkGroup": (*group, 1),
            "ThreadTile": item,
            "VectorWidth": vector,
            "DepthU": depth,
            "LoopUnroll": depth,
            "NumLoadsCoalescedA": loads[0],
            "NumLoadsCoalescedB": loads[1],
            "GlobalSplitU": parts(wish, -(-situation.gemm.k // depth)),
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return blockings(GROUPS, ITEMS, CANDIDATE_DEPTH)


def _coalesced_loads(
    tile: tuple[int, int], depth: int, items: int, width: int, situation: PolicyInput
) -> tuple[int, int] | None:
    """The coalesced loads of A and of B; None if the work-items cannot share the loads of A or of B evenly."""
    a = _loads(tile[0], depth, situation.gemm.transpose_a, items, width)
    b = _loads(tile[1], depth, not situation.gemm.transpose_b, items, width)
    return (a, b) if a and b else None


def _loads(side: int, depth: int, along_k: bool, items: int, width: int) -> int:
    """The coalesced loads of one operand; 0 if the work-items cannot share them evenly."""
    contiguous, across = (depth, side) if along_k else (side, depth)
    loads_of_item, rest = divmod(contiguous * across, items * width)
    if rest or not loads_of_item:
        return 0
    return next(
        (
            count
            for count in LOADS_SIDE_BY_SIDE
            if contiguous % (count * width) == 0
            and loads_of_item % count == 0
            and across % (loads_of_item // count) == 0
        ),
        0,
    )
