"""The mapping of `RegisterGemm`: a tile of D for each work-item, in vectors; operands are packed if copying pays."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping, Pair, blocking_of, blockings, parts

CPU_GROUPS: tuple[Pair, ...] = ((1, 2), (1, 1), (1, 4), (2, 1), (2, 2))
CPU_ALONE: tuple[Pair, ...] = ((1, 1),)
"""The work-group of candidates on a CPU: it runs as one thread, so more work-items only make it longer."""
CPU_ITEMS: tuple[Pair, ...] = ((32, 8), (16, 4), (16, 8), (32, 4), (32, 12), (48, 8), (64, 4), (64, 6), (16, 1))
GPU_GROUPS: tuple[Pair, ...] = ((16, 16), (8, 8), (16, 8), (32, 8))
GPU_ITEMS: tuple[Pair, ...] = ((4, 4), (8, 4), (4, 8), (8, 8), (2, 2))
VECTOR_BYTES = {"CPU": 64, "GPU": 16}
LOOP_UNROLL = 8
REUSED, REUSED_ACROSS = 256, 32
"""The columns (for A; rows for B) of D from which on a copy pays; and the same for an operand that is contiguous along
K, so that reading it in vectors would be a gather."""
PACKED_BYTES = 8 * 1024
"""An operand with at most so many bytes is not copied, because the first-level cache holds it. This value and
`REUSED_ACROSS` were fitted on a CPU with the latency model's constants for CPUs (benchmarks/recorded/policies_cpu)."""


class RegisterMapping(FamilyMapping):
    """WorkGroup x ThreadTile with the widest vector that divides the tile's rows."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        gemm, kind = situation.gemm, situation.target.kind
        group, item = blocking_of(wish, *_choices(kind))
        widest = VECTOR_BYTES[kind] // situation.element_bytes
        a_bytes, b_bytes = gemm.m * gemm.k * situation.element_bytes, gemm.k * gemm.n * situation.element_bytes
        return {
            "WorkGroup": (*group, 1),
            "ThreadTile": item,
            "VectorWidth": math.gcd(widest, item[0]),
            "LoopUnroll": LOOP_UNROLL,
            "GlobalSplitU": parts(wish, -(-gemm.k // LOOP_UNROLL)),
            "PackA": wish.packs and _copy_pays(a_bytes, gemm.n, gemm.transpose_a),
            "PackB": wish.packs and _copy_pays(b_bytes, gemm.m, gemm.transpose_b),
        }

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        groups, items = _choices(situation.target.kind)
        return blockings(CPU_ALONE if situation.target.kind == "CPU" else groups, items, LOOP_UNROLL)


def _choices(kind: str) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    return (CPU_GROUPS, CPU_ITEMS) if kind == "CPU" else (GPU_GROUPS, GPU_ITEMS)


def _copy_pays(operand_bytes: int, reused: int, is_across: bool) -> bool:
    return operand_bytes > PACKED_BYTES and reused >= (REUSED_ACROSS if is_across else REUSED)
