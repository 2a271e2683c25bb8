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
SHORTEST_COPY = 4
"""The fewest bytes of a load that goes to shared memory by itself (`cp.async`). Shorter loads wait in registers, so
one tile is in flight."""
CANDIDATE_GROUPS = (2, 2)
"""The sub-groups of a candidate; large tiles get more."""
SMALLEST = TileWish(LEAST_SIDE, LEAST_SIDE, LEAST_DEPTH, sub_groups=(1, 1), stages=2)
"""The candidate if no other fits."""
LEAST_SHARED = 32
"""The fewest sums of a work-item whose tile is shared by more warps."""
LOAD_REGISTERS, COPY_REGISTERS, MOST_REGISTERS = 3, 5, 255
"""Registers that a load of a work-item takes, most of them for addresses, if it waits in registers and if it is a copy
to shared memory; and the registers of a work-item. The first two are what Triton 3.6 took for sm_90. With more loads a
program spills: on an H200, a tile of 256 x 128 x 64 in single loads of bfloat16 took 20 times as long."""


class TritonMapping(FamilyMapping):
    """`MacroTile`, `DepthU`, `NumWarps` and `NumStages` set the tile. Alignment decides how operands are loaded."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        gemm, element = situation.gemm, situation.element_bytes
        precision = _precision(situation, allows_tf32=True)
        m, n, depth = _sides(wish, situation, precision)
        width = self.load_width(wish, situation)
        by_tma = width == 0
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
            "GlobalReadVectorWidth": max(1, width),
            "StoreVectorWidth": situation.writes if wish.is_wide else 1,
            "InputPrecision": precision,
            "GlobalSplitU": splits,
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        width = self.load_width(SMALLEST, situation)
        return _candidates(situation.element_bytes, situation.target.local_memory_bytes, width, situation.lanes)

    def load_width(self, wish: TileWish, situation: PolicyInput) -> int:
        if not wish.is_wide:
            return 1
        by_tma = situation.capability >= TMA_CAPABILITY and _is_aligned(situation)
        return 0 if by_tma else situation.reads


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
        return _candidates(situation.element_bytes, situation.target.local_memory_bytes, 0, situation.lanes)


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
    return _warps_for(elements, nearest_power(wish.warps, 1, MOST_WARPS), situation.lanes)


def _warps_for(elements: int, warps: int, lanes: int) -> int:
    """`warps`, or more if a work-item would have too many sums."""
    while warps < MOST_WARPS and elements > MOST_SUMS * warps * lanes:
        warps *= 2
    return warps


def _stages(wish: TileWish, stage_bytes: int, register_stages: int, situation: PolicyInput) -> int:
    """The stages of the wish, limited to those that fit: in shared memory, and `register_stages` in registers. At least
    two, even if two do not fit."""
    fit = situation.target.local_memory_bytes // max(1, stage_bytes) + register_stages
    return max(2, min(wish.stages, fit, MOST_STAGES))


@lru_cache(maxsize=256)
def _candidates(element_bytes: int, memory: int, width: int, lanes: int) -> tuple[TileWish, ...]:
    """Each tile with two depths: the deeper variant waits less often for memory, but has fewer stages. Loads by
    work-items (`width` elements each; 0: by the copy engine) may need less depth. If no tile fits, the smallest."""
    depth = DEPTH_BYTES // element_bytes
    found = (
        _candidate(m, n, tile_depth, element_bytes, memory, width, lanes)
        for m in SIDES
        for n in SIDES
        if m * n <= MOST_CANDIDATE and max(m, n) <= 8 * min(m, n)
        for tile_depth in (depth, 2 * depth)
    )
    return tuple(dict.fromkeys(filter(None, found))) or (SMALLEST,)


def _candidate(m: int, n: int, depth: int, element_bytes: int, memory: int, width: int, lanes: int) -> TileWish | None:
    """A tile with as many stages as fit. If its loads need too many registers, more warps share the tile, then it gets
    less depth. None if the tile does not fit."""
    warps = _warps_for(m * n, CANDIDATE_GROUPS[0] * CANDIDATE_GROUPS[1], lanes)
    waits = 0 < width * element_bytes < SHORTEST_COPY
    load_registers = LOAD_REGISTERS if waits else COPY_REGISTERS
    least = LEAST_DEPTH_OF_BYTES if element_bytes == 1 else LEAST_DEPTH
    while width and depth >= least:
        if m * n + load_registers * (m + n) * depth // width <= MOST_REGISTERS * warps * lanes:
            break
        if warps < MOST_WARPS and m * n >= LEAST_SHARED * warps * lanes:
            warps *= 2
        else:
            depth //= 2
    stages = memory // ((m + n) * depth * element_bytes) if depth >= least else 0
    if stages < 2:
        return None
    groups = (CANDIDATE_GROUPS[0], warps // CANDIDATE_GROUPS[0])
    return TileWish(m, n, depth, sub_groups=groups, stages=1 if waits else min(stages, CANDIDATE_STAGES))
