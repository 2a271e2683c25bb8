"""A policy that ranks a family's tiles by an analytical model of their time.

The idea is Origami's (ROCm/rocm-libraries): tiles run in whole waves; each iteration takes as long as its arithmetic or
the slowest level of memory; a prologue and an epilogue are added. The formulas and constants are our own. The model
ranks tiles; its seconds are not a forecast.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from tunesmith.kernels import Kernel
from tunesmith.records import Problem, Target

from .answers import ReasonLine
from .family_order import RIVALS
from .mappings import FamilyMapping, mapping_of
from .policy import MATRIX_VECTOR, TilePolicy
from .situation import PolicyInput
from .wish import TileWish

SPLITS, SPLIT_TILES = (2, 4, 8, 16), 6
"""The numbers of parts of K that are tried, and the number of best tiles for which they are tried."""
LEAST_ITERATIONS = 4
"""The fewest iterations of a part of K: with fewer, adding the parts takes as long as computing them."""
OVERHEAD = 48
"""The side of a square tile for which fetching from shared memory takes as long as multiplying."""
ITEM_OVERHEAD = {"CPU": 0.1, "GPU": 1.0}
"""Multiply-adds per load of a work-item for which loading takes as long as multiplying. A CPU hides loads behind
arithmetic; its value was fitted on a CPU (benchmarks/recorded/policies_cpu)."""
MOST_SHARES = 2
"""The most that a compute unit can take of the cache's rate while others are idle, in multiples of its equal share."""
UNIT_REGISTERS, MOST_RESIDENT = 65536, 8
"""Registers of a GPU's compute unit, and the most work-groups that count as resident at once."""
FILL = 0.5
"""What a family that adds the parts of K in its kernel spends on zeroing its flags before, in launches. Fitted on an
H200 (benchmarks/recorded/gemm_bf16)."""
SUM_BYTES = 4
"""Bytes of a partial sum in the workspace."""
HOLD_BACK = 0.1
"""The fraction of the shorter times (arithmetic, traffic) that the longest time does not hide."""


@dataclass(frozen=True, slots=True)
class LatencyEstimate:
    """The estimated time of a product with a tile. `bound` names what an iteration waits for."""

    wish: TileWish
    seconds: float
    waves: int
    bound: str


class LatencyPolicy(TilePolicy):
    """Estimates every candidate of the family, and splits K if tiles leave compute units idle. Takes the fastest."""

    name = "latency"
    acts: ClassVar[tuple[str, ...]] = (MATRIX_VECTOR, "split")
    steps = frozenset((MATRIX_VECTOR, "split"))
    ranks: ClassVar[bool] = True

    def ordered(
        self, problem: Problem, target: Target, kernels: Collection[Kernel], lines: list[ReasonLine] | None = None
    ) -> tuple[Kernel, ...]:
        """The families, with the rivals among them in the order of their expected times."""
        names = RIVALS.get((target.api, target.kind), ())
        rivals = [kernel for kernel in kernels if kernel.name in names]
        if len(rivals) < 2 or problem.type.operation != "GEMM" or not all(problem.sizes):
            return tuple(kernels)
        situation = PolicyInput.of(problem, target)
        if situation.is_vector:
            return tuple(kernels)
        seconds = {kernel.name: self._expected(situation, kernel) for kernel in rivals}
        quickest_first = iter(sorted(rivals, key=lambda kernel: seconds[kernel.name]))
        if lines is not None:
            times = ", ".join(f"{name} {time * 1e6:.3g} us" for name, time in seconds.items())
            lines.append(ReasonLine("families", f"expected times: {times}"))
        return tuple(next(quickest_first) if kernel in rivals else kernel for kernel in kernels)

    def _expected(self, situation: PolicyInput, kernel: Kernel) -> float:
        """The expected seconds of a family's best tile; infinite for a family without a mapping."""
        mapping = mapping_of(kernel.name)
        if mapping is None:
            return math.inf
        return estimate(self.wish(situation, mapping, []), situation, mapping).seconds

    def wish(self, situation: PolicyInput, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        unsplit = [estimate(wish, situation, mapping) for wish in mapping.candidates(situation)]
        best = min(unsplit, key=lambda candidate: candidate.seconds)
        lines.append(ReasonLine("candidates", f"{len(unsplit)} tiles; the best in one piece: {_text(best)}"))
        if "split" in self.steps:
            split = [estimate(wish, situation, mapping) for wish in _split_wishes(unsplit, situation)]
            best = min((best, *split), key=lambda candidate: candidate.seconds)
            if split:
                lines.append(ReasonLine("split", f"{len(split)} ways to split K; the best of all: {_text(best)}"))
        lines.append(ReasonLine("tile", f"least expected time: {_text(best)}"))
        return best.wish

    def further_wishes(self, situation: PolicyInput, mapping: FamilyMapping) -> Iterable[TileWish]:
        unsplit = [estimate(wish, situation, mapping) for wish in mapping.candidates(situation)]
        split_wishes = _split_wishes(unsplit, situation) if "split" in self.steps else []
        split = [estimate(wish, situation, mapping) for wish in split_wishes]
        return [candidate.wish for candidate in sorted((*unsplit, *split), key=lambda candidate: candidate.seconds)[1:]]


def estimate(wish: TileWish, situation: PolicyInput, mapping: FamilyMapping) -> LatencyEstimate:
    """The estimated time of a product with a tile, in a family with this mapping.

    waves = ceil(tiles x parts / units). An iteration = max(arithmetic, cache, memory, latency / stages), plus a share
    of the others. A wave = iterations + writing the tile, after a fill of the pipeline. Parts of K are read and added.
    docs/policies.md explains the terms.
    """
    gemm, chip, units = situation.gemm, situation.chip, situation.units
    tiles_m, tiles_n = -(-gemm.m // wish.m), -(-gemm.n // wish.n)
    groups = tiles_m * tiles_n * gemm.batch * wish.split
    active, waves = min(groups, units), -(-groups // units)
    iterations = -(-gemm.k // (wish.depth * wish.split))
    resident = _resident(wish, situation, mapping, groups)
    arithmetic = (
        2.0 * wish.elements * wish.depth * units / (chip.rate(situation.arithmetic) * _efficiency(wish, situation))
    )
    fetched = wish.stage_bytes(situation.element_bytes) * max(active, units / MOST_SHARES)
    times = {
        "arithmetic": arithmetic,
        "cache": fetched / chip.cache_rate,
        "memory": _distinct(wish, tiles_m, tiles_n, active) * situation.element_bytes / chip.memory_rate,
        "latency": chip.latency / (wish.stages * resident),
        "loads": _loads(wish, situation, mapping) * chip.access,
    }
    bound = max(times, key=lambda name: times[name])
    iteration = times[bound] + HOLD_BACK * (sum(times.values()) - times[bound])
    sum_bytes = SUM_BYTES if wish.split > 1 else situation.dest_bytes
    written = wish.elements * sum_bytes * active / chip.memory_rate
    if mapping.stores_singly(wish, situation):
        written += wish.elements * chip.access
    fills = 1 if mapping.is_persistent else -(-groups // (units * resident))
    seconds = chip.launch + fills * (chip.latency + times["memory"]) + waves * (iterations * iteration + written)
    if wish.split > 1:
        # The work-group that adds the parts of a tile reads all other parts, at a compute unit's share of the cache
        # rate.
        read = (wish.split - 1) * wish.elements * SUM_BYTES * units / chip.cache_rate
        seconds += read + (FILL if mapping.adds_in_kernel else 1) * chip.launch
    for copied in mapping.copied_bytes(situation):
        seconds += chip.launch + 2 * copied / chip.memory_rate
    return LatencyEstimate(wish, seconds, waves, bound)


def _loads(wish: TileWish, situation: PolicyInput, mapping: FamilyMapping) -> float:
    """Loads of all work-items in an iteration; 0 if a copy engine loads."""
    width = mapping.load_width(wish, situation)
    return (wish.m + wish.n) * wish.depth / width if width else 0.0


def _resident(wish: TileWish, situation: PolicyInput, mapping: FamilyMapping, groups: int) -> int:
    """Work-groups that a GPU's compute unit runs at once, at least one: as many as there are, and as shared memory and
    the registers of sums permit. They wait for memory together. A persistent family has one."""
    if situation.target.kind != "GPU" or mapping.is_persistent:
        return 1
    stages = int(wish.stages * wish.stage_bytes(situation.element_bytes))
    fit = min(situation.target.local_memory_bytes // max(1, stages), UNIT_REGISTERS // wish.elements)
    return max(1, min(fit, MOST_RESIDENT, groups // situation.units))


def _efficiency(wish: TileWish, situation: PolicyInput) -> float:
    """The share of the arithmetic rate that a tile reaches, by its reuse of fetched elements: the harmonic mean of the
    tile's sides; if the wish names a work-item's tile, also that of its sides in vectors of 16 bytes (CPU: 64)."""
    if wish.item != (0, 0):
        lanes = max(1, (64 if situation.target.kind == "CPU" else 16) // situation.element_bytes)
        m, n = max(1.0, wish.item[0] / lanes), wish.item[1]
        reuse = m * n / (m + n)
        of_item = reuse / (reuse + ITEM_OVERHEAD[situation.target.kind])
        if situation.target.kind == "CPU":
            return of_item * min(1.0, wish.item[0] / lanes)
        return of_item * _tile_efficiency(wish)
    return _tile_efficiency(wish)


def _tile_efficiency(wish: TileWish) -> float:
    side = 2 * wish.m * wish.n / (wish.m + wish.n)
    return side / (side + OVERHEAD)


def _distinct(wish: TileWish, tiles_m: int, tiles_n: int, active: int) -> float:
    """Elements of A and B that all active work-groups together read from memory in an iteration. The work-groups cover
    a roughly square block of tiles, so that neighbours share operands."""
    tiles = max(1, math.ceil(active / wish.split))
    down = min(tiles_m, max(1, math.isqrt(max(1, tiles * wish.n // wish.m))))
    across = min(tiles_n, -(-tiles // down))
    blocks = max(1, -(-tiles // (down * across)))
    return blocks * (down * wish.m + across * wish.n) * wish.depth * wish.split


def _split_wishes(unsplit: list[LatencyEstimate], situation: PolicyInput) -> list[TileWish]:
    """The best tiles with K in parts, as long as the parts find idle compute units and have enough iterations."""
    wishes = []
    for candidate in sorted(unsplit, key=lambda candidate: candidate.seconds)[:SPLIT_TILES]:
        wish = candidate.wish
        groups = situation.product.tiles(wish.m, wish.n)
        for split in SPLITS:
            if groups * split > 2 * situation.units or situation.gemm.k < split * wish.depth * LEAST_ITERATIONS:
                break
            wishes.append(replace(wish, split=split))
    return wishes


def _text(candidate: LatencyEstimate) -> str:
    return f"{candidate.wish}; {candidate.waves} waves, bound by {candidate.bound}, {candidate.seconds * 1e6:.3g} us"
