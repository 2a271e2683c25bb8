"""`Algorithm`, which each algorithm implements; the family asks the algorithm that a configuration names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from tunesmith.kernels.gemm.launching import grid, input_arguments, integers, output_arguments
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Launch, Plan, Target

from .text import Macros, Section
from .tiling import AccessWidth, Pair, ProgramTraits, Tiling, blocks


class Algorithm(ABC):
    """One kernel for many tilings, in the C of `source/`. Implementations are stateless.

    A text may hold several entries, for different transposes; `suffix` tells their names apart.
    """

    parameters_used: tuple[str, ...] = ()
    """The parameters that change the program, beside WorkGroup and TopTile, which always change it."""
    interleaved = False
    """Whether it computes interleaved batches; otherwise it computes strided ones."""
    split = False
    """Whether K is split over work-groups, whose sums a second kernel, `reduce`, adds."""

    @property
    def is_staged(self) -> bool:
        """Whether operands are fetched in stages, which are CacheLine bytes deep."""
        return "CacheLine" in self.parameters_used

    def block(self, tiling: Tiling) -> Pair:
        """Rows and columns of D that one work-group computes."""
        return tiling.block

    def items(self, tiling: Tiling) -> int:
        """Work-items of a work-group."""
        return tiling.items

    def local_bytes(self, tiling: Tiling, traits: ProgramTraits) -> int:
        return 0

    def widths(self, tiling: Tiling, traits: ProgramTraits) -> Iterator[AccessWidth]:
        """The widths of the vectors that are read."""
        yield from ()

    @abstractmethod
    def registers(self, tiling: Tiling, traits: ProgramTraits) -> int:
        """About how many 32-bit registers a work-item needs for sums and operands."""

    def macros(self, tiling: Tiling, traits: ProgramTraits) -> Macros:
        """The macros of a whole text, whatever is transposed."""
        return block_macros(tiling, tiling.items)

    @abstractmethod
    def sections(self, tiling: Tiling, traits: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        """The sources of one entry."""

    def plan(self, tiling: Tiling, traits: ProgramTraits, gemm: Gemm, target: Target, shared_bytes: int) -> Plan:
        """The launches. `shared_bytes` is the local memory that a launch asks for because the source does not declare
        it."""
        arguments = (*self.inputs(tiling, gemm), *output_arguments(gemm))
        return Plan((self.launch(tiling, gemm, gemm.batch, arguments, shared_bytes),))

    def inputs(self, tiling: Tiling, gemm: Gemm) -> tuple[Argument, ...]:
        """The arguments for A and B of strided batches, the sizes, and the numbers of blocks."""
        sizes = integers(gemm.m, gemm.n, gemm.k, *blocks(self.block(tiling), gemm))
        return (*input_arguments("A", gemm), *input_arguments("B", gemm), *sizes)

    def launch(
        self, tiling: Tiling, gemm: Gemm, depth: int, arguments: tuple[Argument, ...], shared_bytes: int = 0
    ) -> Launch:
        """The launch of the entry `gemm`, with `depth` work-groups for each block."""
        groups = grid(blocks(self.block(tiling), gemm), depth)
        return Launch(0, "gemm", groups, (self.items(tiling), 1, 1), arguments, shared_bytes)


def block_macros(tiling: Tiling, items: int) -> dict[str, int | str]:
    """The macros of the tiling that every algorithm's sources use."""
    return {
        "ITEMS": items,
        "WR": tiling.group[0],
        "WC": tiling.group[1],
        "ROWS": tiling.item[0],
        "COLUMNS": tiling.item[1],
        "BLOCK_M": tiling.block[0],
        "BLOCK_N": tiling.block[1],
        "TOP_M": tiling.top[0],
        "TOP_N": tiling.top[1],
    }


def transposes(traits: ProgramTraits) -> dict[str, int | str]:
    return {"TRANSPOSE_A": int(traits.transpose_a), "TRANSPOSE_B": int(traits.transpose_b)}
