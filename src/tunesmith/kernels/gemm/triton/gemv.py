"""`TritonGemv`: a matrix times a vector in Triton, which is the GEMM whose M or N is 1; bound by memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.stream_k import ceil_div, iterations_of
from tunesmith.kernels.gemm.types import gemm_of_type
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, Module, Plan, Problem, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from . import arguments as arg
from . import guess as _guess
from . import parameters as p
from . import rules as rules
from .arguments import JitArgument
from .shape import SUM_BYTES, along_k

SOURCES = ("loads_source", "epilogue_source", "gemv_source")
ADDED, ADDING_WARPS = 256, 4
"""Elements of D and warps of a work-group of `add_vectors`, as in `gemv_source`."""
MOST_NUMBERS = 64
"""The most elements of a tile for each work-item: it has as many sums, and as many loads on their way."""
LARGEST = 8192


@dataclass(frozen=True, slots=True)
class GemvShape:
    """A typed configuration: `rows` elements of D and `depth` steps along K. With `along_m`, D is one column."""

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

    With GlobalSplitU = s > 1, s work-groups take one part of K each; a second launch adds their sums in a fixed order.
    """

    name, operation, language, named_by = "TritonGemv", "GEMM", "Triton", p.GEMV_ALONG.name

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space(p.GEMV)

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        shape, gemm = GemvShape.of(config), gemm_of_type(problem_type)
        yield from rules.wrong_device_or_type(gemm, "ieee", target)
        yield from rules.wrong_powers(
            **{"GemvTile rows": shape.rows, "GemvTile depth": shape.depth}, NumWarps=shape.warps
        )
        yield from rules.wrong_widths(np.dtype(gemm.dtype).itemsize, GlobalReadVectorWidth=shape.read)
        if shape.warps > rules.MOST_WARPS or shape.stages > rules.MOST_STAGES:
            yield Rejection("warps and stages", f"{shape.warps} warps, {shape.stages} stages")
        numbers, items = shape.rows * shape.depth, shape.warps * target.sub_group_size
        if numbers > LARGEST * shape.warps or numbers > MOST_NUMBERS * max(1, items):
            yield Rejection("registers", f"a tile of {numbers} elements for {items} work-items")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        shape, gemm = GemvShape.of(config), Gemm.of(problem)
        if (gemm.n if shape.along_m else gemm.m) != 1:
            yield Rejection("no vector", f"D is {gemm.m} x {gemm.n}, this is for M or N = 1, as GemvAlong says")
        groups = ceil_div(shape.extent(gemm), shape.rows)
        yield from rules.wrong_launch(problem, groups, shape.workspace(gemm), target)
        yield from rules.wrong_batch(gemm)
        contiguous = gemm.k if shape.matrix_along_k(gemm) else shape.extent(gemm)
        leading, stride = (gemm.lda, gemm.stride_a) if shape.along_m else (gemm.ldb, gemm.stride_b)
        yield from rules.uneven("the matrix", shape.read, {"it": (contiguous, leading, stride)}, gemm)
        if shape.splits > shape.iterations(gemm):
            yield Rejection("global split", f"{shape.splits} parts of {shape.iterations(gemm)} iterations of K")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        yield from rules.useless(facts, GemvShape.of(config).warps, target)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        shape, gemm = GemvShape.of(config), gemm_of_type(problem_type)
        arguments, constants = _jit_arguments(shape, gemm), _constants(shape, gemm)
        options: dict[str, Value] = {"num_warps": shape.warps, "num_stages": shape.stages}
        aligned = ("matrix",) if shape.read > 1 else ()
        product = arg.module(SOURCES, "gemv", arguments, constants, options, aligned)
        if shape.splits == 1:
            return (product,)
        adding: dict[str, Value] = {"num_warps": ADDING_WARPS, "num_stages": 1}
        return product, arg.module(SOURCES, "add_vectors", arguments, constants, adding)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        shape, gemm = GemvShape.of(config), Gemm.of(problem)
        if 0 in (gemm.m, gemm.n, gemm.batch):
            return Plan(())
        arguments = _jit_arguments(shape, gemm)
        groups = (ceil_div(shape.extent(gemm), shape.rows), shape.splits, gemm.batch)
        product = arg.launch(0, SOURCES[-1], "gemv", groups, shape.warps * target.sub_group_size, arguments, target)
        if shape.splits == 1:
            return Plan((product,))
        groups = (ceil_div(shape.extent(gemm), ADDED), gemm.batch, 1)
        add = arg.launch(1, SOURCES[-1], "add_vectors", groups, ADDING_WARPS * target.sub_group_size, arguments, target)
        return Plan((product, add), shape.workspace(gemm))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        shape = GemvShape.of(config)
        return {"MacroTile": (shape.rows, 1) if shape.along_m else (1, shape.rows), "DepthU": shape.depth}

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        """The time to read the matrix once from memory, as fast as the work-groups can request it."""
        shape, gemm = GemvShape.of(config), Gemm.of(problem)
        groups = ceil_div(shape.extent(gemm), shape.rows) * shape.splits * gemm.batch
        busy = min(1.0, groups * shape.warps / (4 * max(1, target.compute_units)))
        size = shape.extent(gemm) * gemm.k * gemm.batch * np.dtype(gemm.dtype).itemsize
        launches = 1 if shape.splits == 1 else 2
        return launches * _guess.LAUNCH + _guess.FILL + size / (_guess.BYTES_PER_SECOND * busy)


def _constants(shape: GemvShape, gemm: Gemm) -> dict[str, Value]:
    return {
        "ROWS": shape.rows,
        "DEPTH": shape.depth,
        "ALONG_K": shape.matrix_along_k(gemm),
        "ALONG_M": shape.along_m,
        "WIDTH": shape.read,
        "INTEGERS": gemm.sums == "int32",
        "SPLIT": shape.splits > 1,
        "EPILOGUE": (gemm.bias, gemm.activation, gemm.use_beta),
        "SCALED": gemm.scaled,
    }


def _jit_arguments(shape: GemvShape, gemm: Gemm) -> dict[str, JitArgument]:
    """The arguments: one operand is the matrix, the other a vector with a step from one number to the next."""
    each, longer = divmod(shape.iterations(gemm), shape.splits)
    a_along_k, b_along_k = along_k(gemm)
    if shape.along_m:
        matrix, vector = ("A", gemm.lda, gemm.stride_a), ("B", 1 if b_along_k else gemm.ldb, gemm.stride_b)
        step_c, step_d = 1, 1
    else:
        matrix, vector = ("B", gemm.ldb, gemm.stride_b), ("A", 1 if a_along_k else gemm.lda, gemm.stride_a)
        step_c, step_d = gemm.ldc, gemm.ldd
    arguments = {
        "matrix": arg.operand(matrix[0], gemm.dtype),
        "vector": arg.operand(vector[0], gemm.dtype),
        "d": arg.operand("D", gemm.dest),
        **arg.epilogue(gemm),
        **arg.integers(extent=shape.extent(gemm), k=gemm.k, batches=gemm.batch, each=each, longer=longer),
        **arg.integers(count=shape.splits),
        **arg.longs(leading=matrix[1], stride_matrix=matrix[2], step_vector=vector[1], stride_vector=vector[2]),
        **arg.longs(step_c=step_c, step_d=step_d, stride_c=gemm.stride_c, stride_d=gemm.stride_d),
    }
    return arguments | ({"parts": arg.workspace(gemm.sums)} if shape.splits > 1 else {})
