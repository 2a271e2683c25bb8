"""A combination: one kernel in a list of portBLAS's tuner."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tunesmith.records import Configuration, Value

Pair = tuple[int, int]


class RuleSet(StrEnum):
    """Whose rules decide: `compat` follows the original generator to the byte; `ours` follows what the kernels need."""

    COMPAT = "compat"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Combination:
    """One value for each parameter of a GEMM kernel; 0, False or (1, 1) for a parameter that its algorithm lacks.

    Rows and columns are those of the output. Sizes count work-items or elements; `cache_line` counts bytes.
    """

    algorithm: str
    """local, non_local, interleaved, naive or tall_skinny"""
    vectorization: str
    """none, partial or full"""
    vector: int = 1
    cache_line: int = 0
    item: Pair = (1, 1)
    """rows and columns of a work-item"""
    group: Pair = (1, 1)
    """rows and columns of a work-group, in work-items"""
    top: Pair = (1, 1)
    """rows and columns of a top-level tile, in work-groups (`block_level_tiles`)"""
    batch: Pair = (1, 1)
    """matrices of a work-item, and work-items along the batch of a work-group"""
    double_buffer: bool = False
    pad_a: bool = False
    pad_b: bool = False

    def configuration(self) -> Configuration:
        """The combination as a configuration of the kernel family."""
        values: dict[str, Value] = {name: getattr(self, field) for field, name in PARAMETERS.items()}
        return Configuration(values | {PARAMETERS["group"]: (*self.group, 1)})

    @property
    def words(self) -> Words:
        return _WORDS[self.algorithm]

    @property
    def flags(self) -> tuple[bool, bool, bool]:
        return self.double_buffer, self.pad_a, self.pad_b

    def tile(self, mode: RuleSet = RuleSet.OURS) -> str:
        """`Tile<...>` with the tiles of a work-item, a work-group, a sub-group (none with `ours`), the top level, and a
        batch. The original puts top-level tiles into the slots of sub-groups, which its kernels never read."""
        return f"Tile<{', '.join(map(str, self.tile_numbers(mode)))}>"

    def tile_numbers(self, mode: RuleSet) -> tuple[int, ...]:
        middle = (*self.top, 1, 1) if mode is RuleSet.COMPAT else (1, 1, *self.top)
        return (*self.item, *self.group, *middle, *self.batch)


PARAMETERS = {
    "algorithm": "PortBlasAlgorithm",
    "vectorization": "Vectorization",
    "vector": "VectorSize",
    "cache_line": "CacheLine",
    "item": "WorkItem",
    "group": "WorkGroup",
    "top": "TopTile",
    "batch": "BatchTile",
    "double_buffer": "DoubleBuffer",
    "pad_a": "PadA",
    "pad_b": "PadB",
}
"""The kernel family's parameter for each field. `WorkGroup` has a third entry, which is 1."""


class Words(NamedTuple):
    """An algorithm's enumerators in `gemm_memory_t`, `gemm_algorithm_t` and `gemm_batch_type_t`."""

    memory: str
    algorithm: str
    batch: str


_WORDS = {
    "local": Words("local", "standard", "strided"),
    "non_local": Words("no_local", "standard", "strided"),
    "interleaved": Words("no_local", "standard", "interleaved"),
    "naive": Words("no_local", "naive", "strided"),
    "tall_skinny": Words("local", "tall_skinny", "strided"),
}
