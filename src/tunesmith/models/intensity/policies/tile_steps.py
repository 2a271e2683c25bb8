"""Steps that shrink a tile to the resources of a work-group: registers for the sums, shared memory for the stages.

Both shrink by factors of two. The family's own rules decide afterwards. These steps only keep a policy from wishing for
an impossible tile, and can be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .situation import PolicyInput
from .wish import TileWish, fewer_stages, shorter, smaller

TileStep = Callable[[TileWish, PolicyInput], TileWish]

SUM_WORDS = {"NVIDIA": 128, "AMD": 256, "CPU": 512}
"""The most 32-bit words that the sums of a work-item may take: half of NVIDIA's 255 registers; half of the 512
registers of AMD's CDNA 2 and later; the 32 vectors of 16 words of AVX-512."""


def registers(wish: TileWish, situation: PolicyInput) -> TileWish:
    """The wish with its longer side halved while a work-item's sums take more than `SUM_WORDS`; sub-groups stay."""
    most = SUM_WORDS[_vendor(situation)] * situation.lanes * 4 // max(4, situation.element_bytes)
    while wish.elements > most * wish.warps and max(wish.m, wish.n) > 1:
        wish = replace(wish, n=wish.n // 2) if wish.n > wish.m else replace(wish, m=wish.m // 2)
    return wish


def shared_memory(wish: TileWish, situation: PolicyInput) -> TileWish:
    """The wish with fewer stages, then half the depth, then a smaller tile, until the stages fit into local memory."""
    if situation.target.kind == "CPU":
        return wish
    most = situation.target.local_memory_bytes
    while wish.stages * wish.stage_bytes(situation.element_bytes) > most:
        reduced = fewer_stages(wish) or shorter(wish, situation.unit.k) or smaller(wish, situation.unit.m)
        if reduced is None:
            break
        wish = reduced
    return wish


def _vendor(situation: PolicyInput) -> str:
    if situation.target.kind == "CPU":
        return "CPU"
    return "AMD" if situation.target.architecture.startswith("gfx") else "NVIDIA"


TILE_STEPS: dict[str, TileStep] = {"registers": registers, "shared-memory": shared_memory}
"""In the order in which they are applied."""
