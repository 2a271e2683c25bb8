"""The mapping of `CudaWgmmaGemm`: one side of the tile has 64 rows for each warp group, the other a multiple of 16
columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tunesmith.kernels.gemm.cuda.aligned import needs_copy
from tunesmith.kernels.gemm.cuda.wgmma.shape import PARTS_OF_A_CLUSTER
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping, Pair, distance, parts

ROWS, MOST_GROUPS = 64, 3
STEP, LEAST_COLUMNS, MOST_COLUMNS = 16, 32, 256
MOST_COLUMNS_OF_THREE = 192
"""The most columns with three warp groups, which have fewer registers each."""
MOST_IN_PARTS = (2, 192)
"""Warp groups and columns of the largest tiles that a cluster may compute in any number of parts of K, in any layout
and type. Of larger tiles, some have sums that ptxas spills, or for which shared memory has no room."""
MOST_COLUMNS_PROMOTED = 128
"""The most columns of float8, whose sums are kept twice."""
ANY_LAYOUT_BYTES = 2
"""Bytes of an element that the instruction takes in any layout; others have to be contiguous along K."""
ODD_STORE = 1.0
"""What rows along N cost, as a distance of tiles, if M is odd: their work-items then store single elements. On an H200
a tile of 256 x 128 took 16 microseconds to store so, and with rows along M 5."""
STAGE_BYTES, TMA_BYTES = 128, 16
"""Bytes of a row of a stage, and the alignment of TMA's stores in bytes."""


class WgmmaMapping(FamilyMapping):
    """The rows go along the side that brings the tile nearer to the wish. `Stages` stays 0, which means as many as
    fit. Up to 8 parts of K are those of a cluster if the tile is not too large; others go through the workspace."""

    adds_in_kernel = is_persistent = True

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        gemm = situation.gemm
        any_layout = situation.element_bytes == ANY_LAYOUT_BYTES
        by_n = _side(wish.n, wish.m, gemm.transpose_a or not any_layout, gemm.dtype.startswith("float8"))
        by_m = _side(wish.m, wish.n, not gemm.transpose_b or not any_layout, gemm.dtype.startswith("float8"))
        penalty = ODD_STORE if situation.writes == 1 else 0.0
        along_n = _distance(by_n, (wish.n, wish.m)) + penalty <= _distance(by_m, (wish.m, wish.n))
        groups, columns = by_n if along_n else by_m
        values: dict[str, Value] = {
            "WarpGroups": groups,
            "InstructionColumns": columns,
            "RowsAlong": "N" if along_n else "M",
        }
        if situation.dest_bytes == 2:
            values["StorePath"] = "Direct" if self.stores_singly(wish, situation) else "TMA"
        split = parts(wish, -(-gemm.k * situation.element_bytes // STAGE_BYTES))
        if split not in PARTS_OF_A_CLUSTER or groups > MOST_IN_PARTS[0] or columns > MOST_IN_PARTS[1]:
            return values | {"GlobalSplitU": split}
        return values | {"GlobalSplitU": 1, "ClusterShape": (1, 1, split), "StorePath": "Direct"}

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return _candidates(STAGE_BYTES // situation.element_bytes, situation.target.local_memory_bytes)

    def stores_singly(self, wish: TileWish, situation: PolicyInput) -> bool:
        return not wish.is_wide or situation.writes * situation.dest_bytes != TMA_BYTES

    def copied_bytes(self, situation: PolicyInput) -> tuple[int, ...]:
        gemm, element = situation.gemm, situation.element_bytes
        needs_transpose = element != ANY_LAYOUT_BYTES
        operands = (
            (gemm.m, gemm.lda, gemm.stride_a, gemm.transpose_a),
            (gemm.n, gemm.ldb, gemm.stride_b, not gemm.transpose_b),
        )
        return tuple(
            gemm.batch * side * gemm.k * element
            for side, leading, stride, along_k in operands
            if (needs_transpose and not along_k) or needs_copy(leading, stride, gemm.batch, element)
        )


@lru_cache(maxsize=4096)
def _side(rows: int, columns: int, is_free: bool, is_promoted: bool) -> Pair:
    """Warp groups and columns. Columns come in steps of 16 (`is_free`). Those of an operand that is not contiguous
    along K fill boxes of 64, of which nothing is fetched in vain."""
    groups = min(max(1, round(rows / ROWS)), MOST_GROUPS)
    step = STEP if is_free else ROWS
    most = MOST_COLUMNS_OF_THREE if groups == MOST_GROUPS else MOST_COLUMNS
    if is_promoted:
        most = min(most, MOST_COLUMNS_PROMOTED)
    return groups, min(max(round(columns / step) * step, LEAST_COLUMNS, step), most)


def _distance(side: Pair, wish: Pair) -> float:
    return distance((ROWS * side[0], side[1]), wish)


@lru_cache(maxsize=64)
def _candidates(depth: int, memory: int) -> tuple[TileWish, ...]:
    sides = [(ROWS * groups, columns) for groups in (1, 2) for columns in (32, 64, 96, 128, 160, 192, 256)]
    tiles = sorted({*sides, *(side[::-1] for side in sides)}, reverse=True)
    return tuple(
        TileWish(m, n, depth, sub_groups=(4, 1), stages=max(2, memory // ((m + n) * STAGE_BYTES))) for m, n in tiles
    )
