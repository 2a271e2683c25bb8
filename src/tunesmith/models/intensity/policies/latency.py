"""A policy that ranks a family's tiles by an analytical model of their time.

The idea is Origami's (ROCm/rocm-libraries): whole waves of tiles; each iteration takes as long as its arithmetic or
the slowest level of memory; a prologue and an epilogue come on top. The formulas and constants are our own. The model
ranks tiles; its seconds are no forecast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from .answers import ReasonLine
from .mappings import FamilyMapping
from .policy import MATRIX_VECTOR, TilePolicy
from .situation import Situation
from .wish import TileWish

SPLITS, SPLIT_TILES = (2, 4, 8, 16), 6
"""Parts of K that are tried, and for how many of the best tiles."""
LEAST_ITERATIONS = 4
"""Of a part of K: below it, adding the parts takes as long as computing them."""
OVERHEAD = 48
"""Rows and columns of a tile at which fetching it from shared memory takes as long as multiplying it."""
ITEM_OVERHEAD = {"CPU": 0.1, "GPU": 1.0}
"""Multiply-adds for each load of a work-item, at which loading takes as long as multiplying. A CPU's loads hide behind
its arithmetic: its value was fitted on one (benchmarks/recorded/policies_cpu)."""
MOST_SHARES = 2
"""Times its share of the cache's rate that a compute unit can take while others are idle."""
SUM_BYTES = 4
"""Of a part's sum in the workspace."""
HOLD_BACK = 0.1
"""How much of the shorter of arithmetic and traffic is felt behind the longer."""


@dataclass(frozen=True, slots=True)
class LatencyEstimate:
    """Seconds of a tile on a product, in its parts; `bound` names what an iteration waits for."""

    wish: TileWish
    seconds: float
    waves: int
    bound: str


class LatencyPolicy(TilePolicy):
    """Every candidate of the family is estimated, with K split where tiles leave compute units idle."""

    name = "latency"
    acts: ClassVar[tuple[str, ...]] = (MATRIX_VECTOR, "split")
    steps = frozenset((MATRIX_VECTOR, "split"))
    ranks: ClassVar[bool] = True

    def wish(self, situation: Situation, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        whole = [estimate(tile, situation, mapping) for tile in mapping.candidates(situation)]
        best = min(whole, key=lambda tile: tile.seconds)
        lines.append(ReasonLine("candidates", f"{len(whole)} tiles; the best in one piece: {_told(best)}"))
        if "split" in self.steps:
            parts = [estimate(wish, situation, mapping) for wish in _split(whole, situation)]
            best = min((best, *parts), key=lambda tile: tile.seconds)
            if parts:
                lines.append(ReasonLine("split", f"{len(parts)} ways to split K; the best of all: {_told(best)}"))
        lines.append(ReasonLine("tile", f"least expected time: {_told(best)}"))
        return best.wish

    def further_wishes(self, situation: Situation, mapping: FamilyMapping) -> Iterable[TileWish]:
        whole = [estimate(tile, situation, mapping) for tile in mapping.candidates(situation)]
        splits = _split(whole, situation) if "split" in self.steps else []
        parts = [estimate(wish, situation, mapping) for wish in splits]
        return [found.wish for found in sorted((*whole, *parts), key=lambda tile: tile.seconds)[1:]]


def estimate(wish: TileWish, situation: Situation, mapping: FamilyMapping) -> LatencyEstimate:
    """What a tile takes on a product, in a family with this mapping.

    waves = ceil(tiles x parts / units); an iteration = max(arithmetic, cache, memory, latency / stages) plus a share of
    the others; a wave = iterations + writing the tile, after a fill of the pipeline; parts of K are read and added. The
    terms stand in docs/policies.md.
    """
    gemm, chip, units = situation.gemm, situation.chip, situation.units
    tiles_m, tiles_n = -(-gemm.m // wish.m), -(-gemm.n // wish.n)
    groups = tiles_m * tiles_n * gemm.batch * wish.split
    active, waves = min(groups, units), -(-groups // units)
    iterations = -(-gemm.k // (wish.depth * wish.split))
    arithmetic = (
        2.0 * wish.elements * wish.depth * units / (chip.rate(situation.arithmetic) * _efficiency(wish, situation))
    )
    fetched = wish.stage_bytes(situation.element_bytes) * max(active, units / MOST_SHARES)
    times = {
        "arithmetic": arithmetic,
        "cache": fetched / chip.cache_rate,
        "memory": _distinct(wish, tiles_m, tiles_n, active) * situation.element_bytes / chip.memory_rate,
        "latency": chip.latency / wish.stages,
    }
    bound = max(times, key=lambda name: times[name])
    iteration = times[bound] + HOLD_BACK * (sum(times.values()) - times[bound])
    sum_bytes = SUM_BYTES if wish.split > 1 else situation.dest_bytes
    written = wish.elements * sum_bytes * active / chip.memory_rate
    fills = 1 if mapping.is_persistent else waves
    seconds = chip.launch + fills * (chip.latency + times["memory"]) + waves * (iterations * iteration + written)
    if wish.split > 1:
        # Whoever adds the parts of a tile reads all but its own at a compute unit's share of the cache.
        read = (wish.split - 1) * wish.elements * SUM_BYTES * units / chip.cache_rate
        seconds += read + (0.0 if mapping.adds_in_kernel else chip.launch)
    return LatencyEstimate(wish, seconds, waves, bound)


def _efficiency(wish: TileWish, situation: Situation) -> float:
    """Of the arithmetic rate, by how often what is fetched is used: the harmonic mean of the sides, or of a work-item's
    sides where the wish names them, in vectors of 16 bytes (CPU: 64)."""
    if wish.item != (0, 0):
        lanes = max(1, (64 if situation.target.kind == "CPU" else 16) // situation.element_bytes)
        m, n = max(1.0, wish.item[0] / lanes), wish.item[1]
        reuse = m * n / (m + n)
        own = reuse / (reuse + ITEM_OVERHEAD[situation.target.kind])
        if situation.target.kind == "CPU":
            return own * min(1.0, wish.item[0] / lanes)
        return own * _shared(wish)
    return _shared(wish)


def _shared(wish: TileWish) -> float:
    side = 2 * wish.m * wish.n / (wish.m + wish.n)
    return side / (side + OVERHEAD)


def _distinct(wish: TileWish, tiles_m: int, tiles_n: int, active: int) -> float:
    """Elements of A and B that all active work-groups together need from memory for an iteration: they cover a block of
    tiles that is about as high as wide, so that neighbours share."""
    tiles = max(1, math.ceil(active / wish.split))
    down = min(tiles_m, max(1, math.isqrt(max(1, tiles * wish.n // wish.m))))
    across = min(tiles_n, -(-tiles // down))
    blocks = max(1, -(-tiles // (down * across)))
    return blocks * (down * wish.m + across * wish.n) * wish.depth * wish.split


def _split(whole: list[LatencyEstimate], situation: Situation) -> list[TileWish]:
    """The best tiles with K in parts, as long as parts find idle compute units and have iterations."""
    made = []
    for candidate in sorted(whole, key=lambda tile: tile.seconds)[:SPLIT_TILES]:
        wish = candidate.wish
        groups = situation.product.tiles(wish.m, wish.n)
        for split in SPLITS:
            if groups * split > 2 * situation.units or situation.gemm.k < split * wish.depth * LEAST_ITERATIONS:
                break
            made.append(replace(wish, split=split))
    return made


def _told(found: LatencyEstimate) -> str:
    return f"{found.wish}; {found.waves} waves, bound by {found.bound}, {found.seconds * 1e6:.3g} us"
