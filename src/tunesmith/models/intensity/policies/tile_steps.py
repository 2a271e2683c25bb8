"""Steps that shrink a tile to what a work-group has: registers for the sums, shared memory for the stages.

Both shrink by factors of two. The family's own rules decide afterwards; these steps only keep a policy from asking for
what is out of reach, and can be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .situation import Situation
from .wish import TileWish, fewer_stages, shorter, smaller

TileStep = Callable[[TileWish, Situation], TileWish]

SUM_WORDS = {"NVIDIA": 128, "AMD": 256, "CPU": 512}
"""Words of 32 bits of a work-item that sums may take: half of NVIDIA's 255 registers; half of the 512 of AMD's CDNA 2
and later; the 32 vectors of 16 words of AVX-512."""


def registers(wish: TileWish, situation: Situation) -> TileWish:
    """The longer side halved while sums take more than `SUM_WORDS` of a work-item; sub-groups stay."""
    most = SUM_WORDS[_maker(situation)] * situation.lanes * 4 // max(4, situation.element_bytes)
    while wish.elements > most * wish.warps and max(wish.m, wish.n) > 1:
        wish = replace(wish, n=wish.n // 2) if wish.n > wish.m else replace(wish, m=wish.m // 2)
    return wish


def shared_memory(wish: TileWish, situation: Situation) -> TileWish:
    """Fewer stages, then half the depth, then a smaller tile, until the stages fit."""
    if situation.target.kind == "CPU":
        return wish
    most = situation.target.local_memory_bytes
    while wish.stages * wish.stage_bytes(situation.element_bytes) > most:
        less = fewer_stages(wish) or shorter(wish, situation.unit.k) or smaller(wish, situation.unit.m)
        if less is None:
            break
        wish = less
    return wish


def _maker(situation: Situation) -> str:
    if situation.target.kind == "CPU":
        return "CPU"
    return "AMD" if situation.target.architecture.startswith("gfx") else "NVIDIA"


TILE_STEPS: dict[str, TileStep] = {"registers": registers, "shared-memory": shared_memory}
"""In the order in which they are applied."""
