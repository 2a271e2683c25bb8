"""The algorithm with one element of D a work-item."""

from __future__ import annotations

from dataclasses import replace

from .algorithm import Algorithm, block_macros, transposes
from .text import Macros, Section
from .tiling import Pair, ProgramTraits, Tiling

ADDRESSES = 16
"""About how many registers indices and pointers take."""


class Naive(Algorithm):
    """`naive.h`: no blocks, and no reuse beside the caches. A lower bound of speed, and a check of the others."""

    def block(self, tiling: Tiling) -> Pair:
        return tiling.group

    def registers(self, tiling: Tiling, traits: ProgramTraits) -> int:
        return ADDRESSES

    def macros(self, tiling: Tiling, traits: ProgramTraits) -> Macros:
        return block_macros(replace(tiling, item=(1, 1)), tiling.items)

    def sections(self, tiling: Tiling, traits: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        return [Section("naive.h", {"ENTRY": entry, **transposes(traits)})]
