"""What each algorithm must answer; the family asks the one that a configuration names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Launch, OperandArgument, Plan, ScalarArgument, Target

from .text import Macros, Section
from .tiling import Kind, Pair, Tiling, Width, blocks

GRID_MAX = 65_535
"""Work-groups along y and z that every device takes (CUDA's limit, which NVIDIA's OpenCL has too)."""


class Algorithm(ABC):
    """One kernel for many tilings, in the C of `source/`. Implementations are stateless.

    A text holds one entry for each of its kinds; `suffix` tells their names apart.
    """

    acts: tuple[str, ...]
    """The parameters that change something, beside WorkGroup and TopTile, which always do."""
    interleaved = False
    """The layout of the batch that it computes."""

    def entries(self, entry: str) -> tuple[str, ...]:
        """The kernels that belong to one of a text's entries."""
        return (entry,)

    def block(self, tiling: Tiling) -> Pair:
        """Rows and columns of D of one work-group."""
        return tiling.block

    def items(self, tiling: Tiling) -> int:
        """Work-items of a work-group."""
        return tiling.items

    def local_bytes(self, tiling: Tiling, kind: Kind) -> int:
        return 0

    def widths(self, tiling: Tiling, kind: Kind) -> Iterator[Width]:
        """The vectors that are to be read."""
        yield from ()

    @abstractmethod
    def registers(self, tiling: Tiling, kind: Kind) -> int:
        """32-bit registers of a work-item for sums and operands, about."""

    @abstractmethod
    def macros(self, tiling: Tiling, kind: Kind) -> Macros:
        """What holds for a whole text, whatever is transposed."""

    @abstractmethod
    def sections(self, tiling: Tiling, kind: Kind, entry: str, suffix: str) -> list[Section]:
        """The sources of one entry."""

    def last_sections(self) -> list[Section]:
        """Sources that a text has once, behind all entries."""
        return []

    @abstractmethod
    def plan(self, tiling: Tiling, kind: Kind, gemm: Gemm, target: Target, shared_bytes: int) -> Plan:
        """The launches. `shared_bytes` is the local memory that comes with them instead of from the source."""

    def launch(
        self, tiling: Tiling, gemm: Gemm, depth: int, arguments: tuple[Argument, ...], shared_bytes: int = 0
    ) -> Launch:
        """The entry `gemm`, a work-group for each block, `depth` times."""
        return Launch(
            module=0,
            entry="gemm",
            grid=_grid(blocks(self.block(tiling), gemm), depth),
            work_group=(self.items(tiling), 1, 1),
            arguments=arguments,
            shared_bytes=shared_bytes,
        )


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


def transposes(kind: Kind) -> dict[str, int | str]:
    return {"TRANSPOSE_A": int(kind.transpose_a), "TRANSPOSE_B": int(kind.transpose_b)}


def operands(gemm: Gemm) -> tuple[Argument, ...]:
    """A and B as kernels of strided batches take them."""
    return (
        *(OperandArgument("A"), *longs(gemm.lda, gemm.stride_a)),
        *(OperandArgument("B"), *longs(gemm.ldb, gemm.stride_b)),
    )


def sizes(gemm: Gemm) -> tuple[Argument, ...]:
    return integers(gemm.m, gemm.n, gemm.k)


def output(gemm: Gemm) -> tuple[Argument, ...]:
    """OUTPUT_PARAMETERS of `output.h`."""
    d = (OperandArgument("D"), *longs(gemm.ldd, gemm.stride_d), ScalarArgument(gemm.alpha, gemm.sums))
    c = (OperandArgument("C"), *longs(gemm.ldc, gemm.stride_c), ScalarArgument(gemm.beta, gemm.sums))
    return d + c if gemm.use_beta else d


def integers(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int32") for value in values)


def longs(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int64") for value in values)


def _grid(count: Pair, depth: int) -> tuple[int, int, int]:
    """Kernels number blocks in one dimension, so that any shape serves; two are kept where they can be, since PoCL
    compiles anew for a launch of 65,536 work-items or more along one."""
    return (*count, depth) if count[1] <= GRID_MAX else (count[0] * count[1], 1, depth)
