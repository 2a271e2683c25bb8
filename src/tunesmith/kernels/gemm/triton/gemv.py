"""A matrix times a vector in Triton: the GEMM whose M or N is 1, bound by memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.stream_k import ceil_div, iterations_of
from tunesmith.kernels.gemm.types import typed
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, Module, Plan, Problem, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from . import arguments as arg
from . import guess as _guess
from . import parameters as p
from . import rules as rules
from .arguments import Given
from .shape import SUM_BYTES, along_k

SOURCES = ("loads_source", "epilogue_source", "gemv_source")
ADDED, ADDING_WARPS = 256, 4
"""Elements of D that a work-group of `add_vectors` makes, as `gemv_source` has it."""
MOST_NUMBERS = 64
"""Elements of a tile for each work-item, as many sums and as many loads on their way."""
LARGEST = 8192


@dataclass(frozen=True, slots=True)
class GemvShape:
    """A configuration, typed: `rows` elements of D, `depth` steps along K; D is one column where `along_m`."""

    along_m: bool
    rows: int
    depth: int
    warps: int
    stages: int
    read: int
    splits: int

    @staticmethod
    def of(config: Configuration) -> GemvShape:
        rows, depth = config.integers(p.GEMV_TILE.name)
        return GemvShape(
            along_m=config.word(p.GEMV_ALONG.name) == "M",
            rows=rows,
            depth=depth,
            warps=config.integer(p.WARPS.name),
            stages=config.integer(p.WARP_STAGES.name),
            read=config.integer(p.READ_WIDTH.name),
            splits=config.integer(p.SPLIT.name),
        )

    def extent(self, gemm: Gemm) -> int:
        """Elements of D."""
        return gemm.m if self.along_m else gemm.n

    def iterations(self, gemm: Gemm) -> int:
        return iterations_of(gemm.k, self.depth)

    def matrix_along_k(self, gemm: Gemm) -> bool:
        a, b = along_k(gemm)
        return a if self.along_m else b

    def workspace(self, gemm: Gemm) -> int:
        return self.splits * gemm.batch * self.extent(gemm) * SUM_BYTES if self.splits > 1 else 0


class TritonGemv(Kernel):
    """D = activation(alpha op(A) op(B) + bias) + beta C with M = 1 or N = 1; each element of the matrix is read once.

    With GlobalSplitU = s > 1, s work-groups take a part of K each; a second launch adds their sums in a fixed order.
    """

    name, operation, language, named_by = "TritonGemv", "GEMM", "Triton", p.GEMV_ALONG.name

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space(p.GEMV)

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        side, kind = GemvShape.of(config), typed(problem_type)
        yield from rules.wrong_device_or_type(kind, "ieee", target)
        yield from rules.wrong_powers(**{"GemvTile rows": side.rows, "GemvTile depth": side.depth}, NumWarps=side.warps)
        yield from rules.wrong_widths(np.dtype(kind.dtype).itemsize, GlobalReadVectorWidth=side.read)
        if side.warps > rules.MOST_WARPS or side.stages > rules.MOST_STAGES:
            yield Rejection("warps and stages", f"{side.warps} warps, {side.stages} stages")
        numbers, items = side.rows * side.depth, side.warps * target.sub_group_size
        if numbers > LARGEST * side.warps or numbers > MOST_NUMBERS * max(1, items):
            yield Rejection("registers", f"a tile of {numbers} elements for {items} work-items")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        side, gemm = GemvShape.of(config), Gemm.of(problem)
        if (gemm.n if side.along_m else gemm.m) != 1:
            yield Rejection("no vector", f"D is {gemm.m} x {gemm.n}, this is for M or N = 1, as GemvAlong says")
        groups = ceil_div(side.extent(gemm), side.rows)
        yield from rules.wrong_launch(problem, groups, side.workspace(gemm), target)
        yield from rules.wrong_batch(gemm)
        contiguous = gemm.k if side.matrix_along_k(gemm) else side.extent(gemm)
        leading, stride = (gemm.lda, gemm.stride_a) if side.along_m else (gemm.ldb, gemm.stride_b)
        yield from rules.uneven("the matrix", side.read, {"it": (contiguous, leading, stride)}, gemm)
        if side.splits > side.iterations(gemm):
            yield Rejection("global split", f"{side.splits} parts of {side.iterations(gemm)} iterations of K")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        yield from rules.useless(facts, GemvShape.of(config).warps, target)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        side, kind = GemvShape.of(config), typed(problem_type)
        given, constants = _given(side, kind), _constants(side, kind)
        options: dict[str, Value] = {"num_warps": side.warps, "num_stages": side.stages}
        aligned = ("matrix",) if side.read > 1 else ()
        product = arg.module(SOURCES, "gemv", given, constants, options, aligned)
        if side.splits == 1:
            return (product,)
        adding: dict[str, Value] = {"num_warps": ADDING_WARPS, "num_stages": 1}
        return product, arg.module(SOURCES, "add_vectors", given, constants, adding)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        side, gemm = GemvShape.of(config), Gemm.of(problem)
        if 0 in (gemm.m, gemm.n, gemm.batch):
            return Plan(())
        given = _given(side, gemm)
        groups = (ceil_div(side.extent(gemm), side.rows), side.splits, gemm.batch)
        product = arg.launch(0, SOURCES[-1], "gemv", groups, side.warps * target.sub_group_size, given)
        if side.splits == 1:
            return Plan((product,))
        groups = (ceil_div(side.extent(gemm), ADDED), gemm.batch, 1)
        add = arg.launch(1, SOURCES[-1], "add_vectors", groups, ADDING_WARPS * target.sub_group_size, given)
        return Plan((product, add), side.workspace(gemm))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        side = GemvShape.of(config)
        return {"MacroTile": (side.rows, 1) if side.along_m else (1, side.rows), "DepthU": side.depth}

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        """The matrix once through memory, as fast as the work-groups at hand can ask for it."""
        side, gemm = GemvShape.of(config), Gemm.of(problem)
        groups = ceil_div(side.extent(gemm), side.rows) * side.splits * gemm.batch
        busy = min(1.0, groups * side.warps / (4 * max(1, target.compute_units)))
        size = side.extent(gemm) * gemm.k * gemm.batch * np.dtype(gemm.dtype).itemsize
        launches = 1 if side.splits == 1 else 2
        return launches * _guess.LAUNCH + _guess.FILL + size / (_guess.BYTES_PER_SECOND * busy)


def _constants(side: GemvShape, gemm: Gemm) -> dict[str, Value]:
    return {
        "ROWS": side.rows,
        "DEPTH": side.depth,
        "ALONG_K": side.matrix_along_k(gemm),
        "ALONG_M": side.along_m,
        "WIDTH": side.read,
        "INTEGERS": gemm.sums == "int32",
        "SPLIT": side.splits > 1,
        "EPILOGUE": (gemm.bias, gemm.activation, gemm.use_beta),
        "SCALED": gemm.scaled,
    }


def _given(side: GemvShape, gemm: Gemm) -> dict[str, Given]:
    """The operand that is the matrix, and the other one as a vector with a step from one number to the next."""
    each, longer = divmod(side.iterations(gemm), side.splits)
    a_along_k, b_along_k = along_k(gemm)
    if side.along_m:
        matrix, vector = ("A", gemm.lda, gemm.stride_a), ("B", 1 if b_along_k else gemm.ldb, gemm.stride_b)
        step_c, step_d = 1, 1
    else:
        matrix, vector = ("B", gemm.ldb, gemm.stride_b), ("A", 1 if a_along_k else gemm.lda, gemm.stride_a)
        step_c, step_d = gemm.ldc, gemm.ldd
    given = {
        "matrix": arg.operand(matrix[0], gemm.dtype),
        "vector": arg.operand(vector[0], gemm.dtype),
        "d": arg.operand("D", gemm.dest),
        **arg.epilogue(gemm),
        **arg.integers(extent=side.extent(gemm), k=gemm.k, batches=gemm.batch, each=each, longer=longer),
        **arg.integers(count=side.splits),
        **arg.longs(leading=matrix[1], stride_matrix=matrix[2], step_vector=vector[1], stride_vector=vector[2]),
        **arg.longs(step_c=step_c, step_d=step_d, stride_c=gemm.stride_c, stride_d=gemm.stride_d),
    }
    return given | ({"parts": arg.workspace(gemm.sums)} if side.splits > 1 else {})
