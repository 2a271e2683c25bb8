"""One element of D a work-item."""

from __future__ import annotations

from dataclasses import replace

from .algorithm import Algorithm, block_macros, transposes
from .text import Macros, Section
from .tiling import Pair, ProgramTraits, Tiling

ADDRESSES = 16
"""Registers that indices and pointers take, about."""


class Naive(Algorithm):
    """`naive.h`: no block, no reuse, but for what the caches keep. A bound from below, and a check of the others."""

    def block(self, tiling: Tiling) -> Pair:
        return tiling.group

    def registers(self, tiling: Tiling, kind: ProgramTraits) -> int:
        return ADDRESSES

    def macros(self, tiling: Tiling, kind: ProgramTraits) -> Macros:
        return block_macros(replace(tiling, item=(1, 1)), tiling.items)

    def sections(self, tiling: Tiling, kind: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        return [Section("naive.h", {"ENTRY": entry, **transposes(kind)})]
