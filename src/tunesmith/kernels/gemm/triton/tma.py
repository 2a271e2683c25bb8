"""`TritonTmaGemm`: GEMM in Triton whose operands come through TMA descriptors made on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.cuda_common import (
    BlockTile,
    tile_parameters,
    useless_program,
    wrong_device,
    wrong_size,
    wrong_work_group,
)
from tunesmith.kernels.gemm.launching import too_much_local
from tunesmith.kernels.gemm.parameters import language
from tunesmith.kernels.gemm.types import gemm_of_type, wrong_type
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, Module, Plan, Problem, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from . import arguments as arg
from . import rules as rules
from .parameters import PRECISION, STAGES
from .shape import along_k

WARP, MOST_WARPS = 32, 16
SMALLEST_TILE, LARGEST_BOX = 16, 256
"""Elements along a side of an operand's tile: the fewest that `tl.dot` takes, the most that a descriptor fetches."""
ELEMENT = 4
"""Bytes of a float32."""
SOURCE, ENTRY = "tma_source", "gemm"


class TritonTmaGemm(Kernel):
    """One macro tile a work-group: `tl.dot` on tiles that the copy engine fetches, NumStages deep. float32 only.

    The macro tile is WorkGroup x ThreadTile as in other families; Triton decides which thread holds which element.
    """

    name, operation, language = "TritonTmaGemm", "GEMM", "Triton"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space((language(self.language), *tile_parameters(), STAGES, PRECISION))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        tile = BlockTile.of(config)
        yield from wrong_device(target)
        yield from rules.no_copy_engine(target)
        yield from wrong_type(problem_type)
        if problem_type.fields.word("DataType") == "d":
            yield Rejection("data type", f"{problem_type.name}: only single precision (s) in this family")
        yield from wrong_work_group(tile, target)
        if tile.items % WARP or not _power_of_two(tile.items // WARP) or tile.items > WARP * MOST_WARPS:
            warps = f"{WARP} times a power of two up to {MOST_WARPS}"
            yield Rejection("warps", f"{tile.items} work-items, Triton takes {warps}")
        sides = (tile.m, tile.n, tile.depth)
        if not all(map(_power_of_two, sides)) or min(sides) < SMALLEST_TILE:
            shown = "x".join(map(str, sides))
            yield Rejection("tile shape", f"{shown}: every side is a power of two of at least {SMALLEST_TILE}")
        if max(sides) > LARGEST_BOX:
            yield Rejection("TMA box", f"a side of {max(sides)} elements, a descriptor fetches at most {LARGEST_BOX}")
        need = config.integer("NumStages") * tile.operand_bytes("float32")
        yield from too_much_local(need, "for the stages of two operand tiles", target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        gemm = Gemm.of(problem)
        yield from wrong_size(problem, BlockTile.of(config).count(gemm), gemm.batch, 0, target)
        yield from rules.short_sum(config.word(PRECISION.name), gemm)
        for name, leading, stride in (("A", gemm.lda, gemm.stride_a), ("B", gemm.ldb, gemm.stride_b)):
            if leading * ELEMENT % rules.TMA_ALIGNMENT or stride * ELEMENT % rules.TMA_ALIGNMENT:
                aligned = f"multiples of {rules.TMA_ALIGNMENT // ELEMENT}"
                yield Rejection("TMA alignment", f"{name} has strides {leading} and {stride} elements, not {aligned}")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        for fact in facts:
            yield from too_much_local(fact.local_bytes or 0, "after compilation", target)
            yield from useless_program(fact, BlockTile.of(config).items)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        tile, gemm = BlockTile.of(config), gemm_of_type(problem_type)
        a_along_k, b_along_k = along_k(gemm)
        constants: dict[str, Value] = {
            "TILE_M": tile.m,
            "TILE_N": tile.n,
            "DEPTH": tile.depth,
            "A_ALONG_K": a_along_k,
            "B_ALONG_K": b_along_k,
            "PRECISION": config.word(PRECISION.name),
        }
        options: dict[str, Value] = {
            "num_warps": tile.items // WARP,
            "num_stages": config.integer(STAGES.name),
        }
        return (arg.module((SOURCE,), ENTRY, _jit_arguments(tile, gemm), constants, options, aligned=None),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        gemm, tile = Gemm.of(problem), BlockTile.of(config)
        groups = (tile.count(gemm), 1, gemm.batch)
        return Plan((arg.launch(0, SOURCE, ENTRY, groups, tile.items, _jit_arguments(tile, gemm), target),))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        return BlockTile.of(config).derived()


def _jit_arguments(tile: BlockTile, gemm: Gemm) -> dict[str, arg.JitArgument]:
    return {
        "a": arg.loaded("A", "float32", gemm, tile.m, tile.depth),
        "b": arg.loaded("B", "float32", gemm, tile.n, tile.depth),
        "c": arg.operand("C", "float32"),
        "d": arg.operand("D", "float32"),
        **arg.integers(m=gemm.m, n=gemm.n, k=gemm.k),
        **arg.longs(ldc=gemm.ldc, ldd=gemm.ldd, stride_c=gemm.stride_c, stride_d=gemm.stride_d),
        "alpha": arg.scalar(gemm.alpha, "float32"),
        "beta": arg.scalar(gemm.beta, "float32"),
    }


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0
