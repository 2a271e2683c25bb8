"""`Panels`: an operand that is copied into panels before the product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tunesmith.kernels.gemm.launching import input_arguments, integers, longs
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Configuration, Launch, ProblemType, WorkspaceArgument

PACK_DEPTH = 64
"""Steps along K that one work-item of a packing launch copies."""


@dataclass(frozen=True, slots=True)
class Panels:
    """An operand copied into panels as wide as the thread tile; see `register.cl.j2`.

    With `along_tile`, the operand's contiguous dimension is M (of A) or N (of B).
    """

    operand: str
    tile: int
    along_tile: bool

    @staticmethod
    def of(config: Configuration, problem_type: ProblemType) -> tuple[Panels, ...]:
        """The operands that are packed, A before B; none in a family without packing."""
        tile = dict(zip("AB", config.integers("ThreadTile"), strict=True))
        contiguous_k = {"A": problem_type.fields.flag("TransposeA"), "B": not problem_type.fields.flag("TransposeB")}
        return tuple(
            Panels(operand, tile[operand], not contiguous_k[operand])
            for operand in "AB"
            if config.get(f"Pack{operand}")
        )

    def count(self, gemm: Gemm) -> int:
        return -(-self.extent(gemm) // self.tile)

    def extent(self, gemm: Gemm) -> int:
        return gemm.m if self.operand == "A" else gemm.n

    def stride(self, gemm: Gemm) -> int:
        """Elements of all panels of one matrix of the batch."""
        return self.count(gemm) * self.tile * gemm.k

    def size(self, gemm: Gemm) -> int:
        """Bytes of all panels."""
        return self.stride(gemm) * gemm.batch * np.dtype(gemm.dtype).itemsize

    def input_arguments(self, gemm: Gemm, location: WorkspaceArgument) -> tuple[Argument, ...]:
        """The arguments with which the product reads the panels: address, leading dimension and stride."""
        return (location, *longs(0, self.stride(gemm)))

    def pack(self, gemm: Gemm, to: WorkspaceArgument) -> Launch:
        chunks = -(-gemm.k // PACK_DEPTH)
        return Launch(
            module=0,
            entry=f"pack_{self.operand}",
            grid=(self.count(gemm) * chunks, 1, gemm.batch),
            work_group=(1, 1, 1),
            arguments=(to, *input_arguments(self.operand, gemm), *integers(self.extent(gemm), gemm.k, chunks)),
        )
