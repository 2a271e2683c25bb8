"""What a list of portBLAS's tuner is made of: combinations, each a kernel to be tried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tunesmith.records import Configuration

Pair = tuple[int, int]


class Mode(StrEnum):
    """Whose rules decide: `compat` the original generator's, to the byte; `ours` what kernels need."""

    COMPAT = "compat"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Combination:
    """One value for each parameter of a GEMM kernel. What an algorithm has not is 0, False or (1, 1).

    Rows and columns are those of the output; sizes count work-items or elements, `cache_line` bytes.
    """

    algorithm: str
    """local, non_local, interleaved, naive or tall_skinny"""
    vectorization: str
    """none, partial or full"""
    vector: int
    cache_line: int
    item: Pair
    """rows and columns of a work-item"""
    group: Pair
    """rows and columns of a work-group, in work-items"""
    top: Pair
    """rows and columns of a top-level tile, in work-groups (`block_level_tiles`)"""
    batch: Pair
    """matrices of a work-item, and work-items along the batch of a work-group"""
    double_buffer: bool
    pad_a: bool
    pad_b: bool

    def configuration(self) -> Configuration:
        """The same as the kernels' parameters."""
        return Configuration(
            {
                "PortBlasAlgorithm": self.algorithm,
                "Vectorization": self.vectorization,
                "VectorSize": self.vector,
                "CacheLine": self.cache_line,
                "WorkItem": self.item,
                "WorkGroup": (*self.group, 1),
                "TopTile": self.top,
                "BatchTile": self.batch,
                "DoubleBuffer": self.double_buffer,
                "PadA": self.pad_a,
                "PadB": self.pad_b,
            }
        )
