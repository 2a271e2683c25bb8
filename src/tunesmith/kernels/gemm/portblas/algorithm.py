"""What each algorithm must answer; the family asks the one that a configuration names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from tunesmith.kernels.gemm.launching import factor, final, grid, integers
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Launch, Plan, Target

from .text import Macros, Section
from .tiling import AccessWidth, Pair, ProgramTraits, Tiling, blocks


class Algorithm(ABC):
    """One kernel for many tilings, in the C of `source/`. Implementations are stateless.

    A text holds one entry for each of its kinds; `suffix` tells their names apart.
    """

    acts: tuple[str, ...] = ()
    """The parameters that change something, beside WorkGroup and TopTile, which always do."""
    interleaved = False
    """The layout of the batch that it computes."""
    split = False
    """Whether K is split over work-groups, whose sums a second kernel, `reduce`, adds."""

    @property
    def in_stages(self) -> bool:
        """Whether operands come in stages, which are CacheLine bytes deep."""
        return "CacheLine" in self.acts

    def block(self, tiling: Tiling) -> Pair:
        """Rows and columns of D of one work-group."""
        return tiling.block

    def items(self, tiling: Tiling) -> int:
        """Work-items of a work-group."""
        return tiling.items

    def local_bytes(self, tiling: Tiling, kind: ProgramTraits) -> int:
        return 0

    def widths(self, tiling: Tiling, kind: ProgramTraits) -> Iterator[AccessWidth]:
        """The vectors that are to be read."""
        yield from ()

    @abstractmethod
    def registers(self, tiling: Tiling, kind: ProgramTraits) -> int:
        """32-bit registers of a work-item for sums and operands, about."""

    def macros(self, tiling: Tiling, kind: ProgramTraits) -> Macros:
        """What holds for a whole text, whatever is transposed."""
        return block_macros(tiling, tiling.items)

    @abstractmethod
    def sections(self, tiling: Tiling, kind: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        """The sources of one entry."""

    def plan(self, tiling: Tiling, kind: ProgramTraits, gemm: Gemm, target: Target, shared_bytes: int) -> Plan:
        """The launches. `shared_bytes` is the local memory that comes with them instead of from the source."""
        arguments = (*self.inputs(tiling, gemm), *final(gemm))
        return Plan((self.launch(tiling, gemm, gemm.batch, arguments, shared_bytes),))

    def inputs(self, tiling: Tiling, gemm: Gemm) -> tuple[Argument, ...]:
        """A and B as kernels of strided batches take them, sizes, and how many blocks there are."""
        sizes = integers(gemm.m, gemm.n, gemm.k, *blocks(self.block(tiling), gemm))
        return (*factor("A", gemm), *factor("B", gemm), *sizes)

    def launch(
        self, tiling: Tiling, gemm: Gemm, depth: int, arguments: tuple[Argument, ...], shared_bytes: int = 0
    ) -> Launch:
        """The entry `gemm`, a work-group for each block, `depth` times."""
        groups = grid(blocks(self.block(tiling), gemm), depth)
        return Launch(0, "gemm", groups, (self.items(tiling), 1, 1), arguments, shared_bytes)


def block_macros(tiling: Tiling, items: int) -> dict[str, int | str]:
    """What every algorithm's sources are told of the tiling."""
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


def transposes(kind: ProgramTraits) -> dict[str, int | str]:
    return {"TRANSPOSE_A": int(kind.transpose_a), "TRANSPOSE_B": int(kind.transpose_b)}
