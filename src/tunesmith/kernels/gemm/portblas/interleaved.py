"""The algorithm for interleaved batches, in vectors along the batch."""

from __future__ import annotations

from collections.abc import Iterator

from tunesmith.kernels.gemm.launching import integers, longs, output_arguments
from tunesmith.problems.gemm import Gemm
from tunesmith.records import OperandArgument, Plan, Target

from .algorithm import Algorithm, block_macros, transposes
from .text import Macros, Section, named
from .tiling import AccessWidth, ProgramTraits, Tiling, blocks


class Interleaved(Algorithm):
    """`interleaved.h`. In a work-group, work-items are numbered along the batch first, then rows, then columns."""

    parameters_used = ("Vectorization", "VectorSize", "WorkItem", "BatchTile")
    interleaved = True

    def items(self, tiling: Tiling) -> int:
        return tiling.items * tiling.batch[1]

    def widths(self, tiling: Tiling, traits: ProgramTraits) -> Iterator[AccessWidth]:
        yield _width(tiling)

    def registers(self, tiling: Tiling, traits: ProgramTraits) -> int:
        rows, columns = tiling.item
        return (rows * columns * tiling.batch[0] + (rows + 1) * _width(tiling).used) * traits.element.sum_size // 4

    def macros(self, tiling: Tiling, traits: ProgramTraits) -> Macros:
        matrices, along_batch = tiling.batch
        vector = _width(tiling).used
        return {
            **block_macros(tiling, self.items(tiling)),
            "WB": along_batch,
            "VECTOR": vector,
            "BATCH_VECTORS": matrices // vector,
            "BLOCK_BATCH": matrices * along_batch,
            "UNROLLED": "BY_DEVICE(1, 2)",
        }

    def sections(self, tiling: Tiling, traits: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        name = named("NAME", suffix)
        return [
            Section("give.h", {**name, "LANES_GIVEN": _width(tiling).used}),
            Section("interleaved.h", {"ENTRY": entry, **name, **transposes(traits)}),
        ]

    def plan(self, tiling: Tiling, traits: ProgramTraits, gemm: Gemm, target: Target, shared_bytes: int) -> Plan:
        matrices, along_batch = tiling.batch
        arguments = (
            *(OperandArgument("A"), *longs(gemm.lda)),
            *(OperandArgument("B"), *longs(gemm.ldb)),
            *integers(gemm.m, gemm.n, gemm.k, gemm.batch, *blocks(tiling.block, gemm)),
            *output_arguments(gemm),
        )
        return Plan((self.launch(tiling, gemm, -(-gemm.batch // (matrices * along_batch)), arguments),))


def _width(tiling: Tiling) -> AccessWidth:
    return AccessWidth("the matrices of a work-item", tiling.requested_width(along_k=False), tiling.batch[0])
