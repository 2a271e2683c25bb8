"""`BlockedGemm`: GEMM on CPUs, with a block of D a work-group and copies of operands in its cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm import parameters as parameter
from tunesmith.kernels.gemm.launching import GRID_MAX, input_arguments, integers, output_arguments, too_much_local
from tunesmith.kernels.gemm.stream_k import ceil_div
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, Launch, Module, Plan, Problem, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from . import rules as rules
from .blocks import CACHE_BLOCKS, DEPTHS, FEW_COLUMNS, PANELS, Blocks, schedule_of
from .guess import FLOPS_PER_UNIT, LATENCY
from .text import opencl_module

SCHEDULE = parameter.one_of(
    "Schedule",
    (CACHE_BLOCKS, FEW_COLUMNS),
    "CacheBlocks: what a block needs of B for DepthU steps along K is copied into local memory, then the same of A, a "
    "few panels at a time, as in GotoBLAS. FewColumns: ThreadTile columns of D stay in local memory, and A is read "
    "once, DepthU rows at a time, as it lies in memory; A must be contiguous along M.",
)
MACRO_TILE = parameter.pair(
    "MacroTile",
    ((1024, 264), (1024, 192), (1024, 132), (512, 264), (1024, 4), (512, 4)),
    "Most elements of D in a block, along M and along N. Blocks are whole tiles, all about equally large, and so many "
    "that they fill the device's compute units.",
)
THREAD_TILE = parameter.thread_tile((16, 6), (32, 6), (32, 12), (48, 8), (24, 4))
LOOP_UNROLL = replace(
    parameter.LOOP_UNROLL,
    values=(0, 2, 4, 8),
    doc="Steps along K in the unrolled inner loop of CacheBlocks; 0 stands for 4.",
)
DEPTH_U = replace(
    parameter.DEPTH_U,
    values=(0, 256, 320, 384, 512, 4, 8),
    doc="Steps along K between two trips to memory. 0 stands for "
    + " and ".join(f"{depth} in {name}" for name, depth in DEPTHS.items())
    + ".",
)
FETCHED_AHEAD = 8
"""Steps along K by which rows of A are fetched before they are copied."""


class BlockedGemm(Kernel):
    """D = alpha op(A) op(B) + beta C for CPUs, in one launch whatever the sizes."""

    name, operation, language, named_by = "BlockedGemm", "GEMM", "OpenCL", SCHEDULE.name

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space(
            (
                parameter.language(self.language),
                SCHEDULE,
                MACRO_TILE,
                THREAD_TILE,
                parameter.vector_width(16),
                LOOP_UNROLL,
                DEPTH_U,
            )
        )

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        schedule = schedule_of(config)
        if config.word("Schedule") not in SCHEDULE.values:
            yield Rejection("schedule", f"{self.name} has {' and '.join(DEPTHS)}, not {config.word('Schedule')}")
            return
        if target.kind != "CPU":
            yield Rejection("device kind", f"one work-item a work-group is for CPUs, {target.name} is a {target.kind}")
        yield from rules.common(schedule, problem_type, target)
        yield from _wrong_blocks(config)
        if config.word("Schedule") == FEW_COLUMNS:
            yield from _wrong_few_columns(config, problem_type)
        need = _local_elements(config) * rules.element_bytes(problem_type)
        yield from too_much_local(need, "for a block's operands or sums", target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        yield from rules.problem_fits(schedule_of(config), problem, self.plan(config, problem, target), target)
        gemm, schedule = Gemm.of(problem), schedule_of(config)
        if not gemm.m * gemm.n * gemm.batch:
            return
        if (reached := gemm.m + PANELS * schedule.thread_tile[0]) > rules.INT_MAX:
            yield Rejection("index range", f"M with the panels after it is {reached}, beyond 2^31 - 1")
        columns = Blocks.of(gemm, config, target.compute_units).count[1]
        if columns > GRID_MAX:
            yield Rejection("grid", f"{columns} blocks along N, at most {GRID_MAX}")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        yield from rules.compiled(schedule_of(config), facts, target)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        return (_module(config, problem_type),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        gemm = Gemm.of(problem)
        if not gemm.m * gemm.n * gemm.batch:
            return Plan(())
        blocks = Blocks.of(gemm, config, target.compute_units)
        sizes = integers(gemm.m, gemm.n, gemm.k, blocks.rows, blocks.columns)
        inputs = (*input_arguments("A", gemm), *input_arguments("B", gemm))
        arguments = (*output_arguments(gemm), *inputs, *sizes)
        return Plan((Launch(0, "gemm", (*blocks.count, gemm.batch), (1, 1, 1), arguments),))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        return {"DepthU": schedule_of(config).depth, "WorkGroupSize": 1}

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        gemm = Gemm.of(problem)
        if not gemm.m * gemm.n * gemm.batch:
            return None
        blocks = Blocks.of(gemm, config, target.compute_units)
        waves = ceil_div(blocks.count[0] * blocks.count[1] * gemm.batch, target.compute_units)
        tile0, tile1 = schedule_of(config).thread_tile
        work = ceil_div(blocks.rows, tile0) * tile0 * ceil_div(blocks.columns, tile1) * tile1 * gemm.k
        return LATENCY[target.kind] + waves * 2.0 * work / FLOPS_PER_UNIT[target.kind]


def _wrong_blocks(config: Configuration) -> Iterator[Rejection]:
    """Rejections of blocks that are not made of whole tiles and vectors."""
    (rows, columns), (tile0, tile1) = config.integers("MacroTile"), config.integers("ThreadTile")
    vector = config.integer("VectorWidth")
    if tile0 % vector:
        detail = f"VectorWidth {vector} does not divide {tile0}, the thread tile along M"
        yield Rejection("vector width and thread tile", detail)
    least = vector if config.word("Schedule") == FEW_COLUMNS else tile0
    if rows % least or columns % tile1:
        yield Rejection("macro tile", f"{rows} x {columns} elements are not made of whole {least} x {tile1}")


def _wrong_few_columns(config: Configuration, problem_type: ProblemType) -> Iterator[Rejection]:
    if problem_type.fields.flag("TransposeA"):
        yield Rejection("layout", f"{FEW_COLUMNS} reads A as it lies in memory, so it must be contiguous along M")
    depth = schedule_of(config).depth
    if (unroll := config.integer("LoopUnroll")) not in (0, depth):
        yield Rejection("depth", f"LoopUnroll {unroll}; {FEW_COLUMNS} takes all of DepthU {depth} at once")
    (_, columns), (_, tile1) = config.integers("MacroTile"), config.integers("ThreadTile")
    if columns != tile1:
        yield Rejection("macro tile", f"{columns} columns; {FEW_COLUMNS} takes those of the thread tile, {tile1}")


def _local_elements(config: Configuration) -> int:
    """Elements of local memory: a block's part of B and a few panels of A, or a block's sums."""
    schedule, (rows, columns) = schedule_of(config), config.integers("MacroTile")
    if config.word("Schedule") == FEW_COLUMNS:
        return rows * columns
    return (columns + PANELS * schedule.thread_tile[0]) * schedule.depth


@lru_cache(maxsize=8192)
def _module(config: Configuration, problem_type: ProblemType) -> Module:
    schedule, (rows, columns) = schedule_of(config), config.integers("MacroTile")
    values = {
        "schedule": schedule,
        "block_rows": rows,
        "block_columns": columns,
        "panels": PANELS,
        "ahead": FETCHED_AHEAD,
        "line": 64 // rules.element_bytes(problem_type),
    }
    template = {CACHE_BLOCKS: "blocked.cl.j2", FEW_COLUMNS: "few_columns.cl.j2"}[config.word("Schedule")]
    return opencl_module(template, values, problem_type, ("gemm",))
