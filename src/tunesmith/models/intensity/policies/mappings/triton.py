"""The mappings of the Triton families with tiles: sides are powers of two, and the stages fit into shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping, nearest_power, parts, power_up

LEAST_SIDE, MOST_SIDE, LEAST_DEPTH, LEAST_DEPTH_OF_BYTES, MOST_DEPTH = 16, 256, 16, 32, 256
MOST_WARPS, MOST_SUMS = 8, 128
"""If a work-item would have more sums, more warps share the tile, up to MOST_WARPS."""
MOST_STAGES = 8
EXACT_SIDE = 64
"""The longest side of tiles that are computed by plain multiply-adds: larger tiles spill to the stack."""
TMA_CAPABILITY, TMA_BYTES = 90, 16
SHORTEST_TF32X3 = 8
"""For sums with fewer terms, three products in TF32 are less exact than float32."""
ROWS_AT_ONCE = 64
"""The rows of one instruction of Hopper's tensor cores."""
DEPTH_BYTES = 128
"""Bytes along K of a candidate's tile. A deeper variant of each candidate has twice as many."""
SIDES, MOST_CANDIDATE = (256, 128, 64, 32, 16), 128 * 256
"""The sides of candidates, and the most elements of D of a candidate."""
CANDIDATE_STAGES = 5
"""The most stages of a candidate; more stages help little and compile slowly."""


class TritonMapping(FamilyMapping):
    """`MacroTile`, `DepthU`, `NumWarps` and `NumStages` set the tile. Alignment decides how operands are loaded."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        gemm, element = situation.gemm, situation.element_bytes
        precision = _precision(situation, allows_tf32=True)
        m, n, depth = _sides(wish, situation, precision)
        by_tma = wish.is_wide and situation.capability >= TMA_CAPABILITY and _is_aligned(situation)
        read_width = situation.reads if wish.is_wide and not by_tma else 1
        register_stages = 0 if by_tma else 1
        splits = parts(wish, -(-gemm.k // depth))
        return {
            "Schedule": "SplitK" if splits > 1 else "DataParallel",
            "MacroTile": (m, n),
            "DepthU": depth,
            "NumWarps": _warps(wish, m * n, situation),
            "NumStages": _stages(wish, (m + n) * depth * element, register_stages, situation),
            "SwapOperands": not n < ROWS_AT_ONCE <= m,
            "LoadPath": "TMA" if by_tma else "Pointer",
            "StorePath": "Pointer",
            "GlobalReadVectorWidth": read_width,
            "StoreVectorWidth": situation.writes if wish.is_wide else 1,
            "InputPrecision": precision,
            "GlobalSplitU": splits,
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return _candidates(situation.element_bytes, situation.target.local_memory_bytes)


class TritonTmaMapping(FamilyMapping):
    """The tile is WorkGroup x ThreadTile. Triton only sees their product and the number of work-items."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        precision = _precision(situation, allows_tf32=False)
        m, n, depth = _sides(wish, situation, precision)
        items = _warps(wish, m * n, situation) * situation.lanes
        across = min(n, max(1, items // LEAST_SIDE))
        return {
            "WorkGroup": (LEAST_SIDE, across, 1),
            "ThreadTile": (m // LEAST_SIDE, n // across),
            "DepthU": depth,
            "NumStages": _stages(wish, (m + n) * depth * situation.element_bytes, 0, situation),
            "InputPrecision": precision,
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return _candidates(situation.element_bytes, situation.target.local_memory_bytes)


def _sides(wish: TileWish, situation: PolicyInput, precision: str) -> tuple[int, int, int]:
    is_exact = situation.gemm.dtype == "float32" and precision == "ieee"
    most = EXACT_SIDE if is_exact else MOST_SIDE
    least = LEAST_DEPTH_OF_BYTES if situation.element_bytes == 1 else LEAST_DEPTH
    deepest = min(MOST_DEPTH, max(least, power_up(situation.gemm.k)))
    m, n = (nearest_power(side, LEAST_SIDE, most) for side in (wish.m, wish.n))
    return m, n, nearest_power(wish.depth, least, deepest)


def _precision(situation: PolicyInput, allows_tf32: bool) -> str:
    if not situation.capability:
        return "ieee"
    if allows_tf32 and situation.gemm.tf32:
        return "tf32"
    return "tf32x3" if situation.gemm.k >= SHORTEST_TF32X3 else "ieee"


def _is_aligned(situation: PolicyInput) -> bool:
    gemm = situation.gemm
    strides = (gemm.stride_a, gemm.stride_b) if gemm.batch > 1 else ()
    return math.gcd(gemm.lda, gemm.ldb, *strides) * situation.element_bytes % TMA_BYTES == 0


def _warps(wish: TileWish, elements: int, situation: PolicyInput) -> int:
    warps = nearest_power(wish.warps, 1, MOST_WARPS)
    while warps < MOST_WARPS and elements > MOST_SUMS * warps * situation.lanes:
        warps *= 2
    return warps


def _stages(wish: TileWish, stage_bytes: int, register_stages: int, situation: PolicyInput) -> int:
    """The stages of the wish, limited to those that fit: in shared memory, and `register_stages` in registers. At least
    two, even if two do not fit."""
    fit = situation.target.local_memory_bytes // max(1, stage_bytes) + register_stages
    return max(2, min(wish.stages, fit, MOST_STAGES))


@lru_cache(maxsize=64)
def _candidates(element_bytes: int, memory: int) -> tuple[TileWish, ...]:
    """Each tile with two depths: the deeper variant waits less often for memory, but has fewer stages. If no tile fits
    with two stages, the smallest tile."""
    depth = DEPTH_BYTES // element_bytes
    fitting = tuple(
        TileWish(m, n, tile_depth, sub_groups=(2, 2), stages=min(stages, CANDIDATE_STAGES))
        for m in SIDES
        for n in SIDES
        if m * n <= MOST_CANDIDATE and max(m, n) <= 8 * min(m, n)
        for tile_depth in (depth, 2 * depth)
        if (stages := memory // ((m + n) * tile_depth * element_bytes)) >= 2
    )
    return fitting or (TileWish(LEAST_SIDE, LEAST_SIDE, LEAST_DEPTH, sub_groups=(1, 1), stages=2),)
