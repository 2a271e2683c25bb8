"""The rejections that all OpenCL families share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tunesmith.kernels.gemm.launching import GRID_MAX, allocations, too_much_for_program
from tunesmith.kernels.gemm.types import wrong_type
from tunesmith.problems.gemm import DATA_TYPES, Gemm
from tunesmith.records import CompiledFacts, Plan, Problem, ProblemType, Rejection, Target

from .launches import REDUCTION_ITEMS, SUMS
from .schedule import OpenCLSchedule, TileLoads

INT_MAX = 2**31 - 1
UNROLLED_MAX = 2_048
"""The most multiply-adds in the unrolled inner loop; with more, compilers take minutes, and the code exceeds the
caches."""


def element_bytes(problem_type: ProblemType) -> int:
    return np.dtype(DATA_TYPES[problem_type.fields.word("DataType")].dtype).itemsize


def common(schedule: OpenCLSchedule, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
    """Rejections for any form: data type, work-group, schedule, size of the code."""
    yield from wrong_type(problem_type)
    if element_bytes(problem_type) == 8 and not target.double_precision:
        yield Rejection("double precision", f"{target.name} has none")
    items = max(schedule.work_items, REDUCTION_ITEMS if schedule.global_split > 1 or schedule.streams else 1)
    if items > target.max_work_group_size:
        yield Rejection("work-group size", f"{items} work-items, the device allows {target.max_work_group_size}")
    if schedule.global_split > GRID_MAX:
        yield Rejection("global split", f"GlobalSplitU {schedule.global_split}, at most {GRID_MAX} work-groups")
    if schedule.stream_grid and schedule.global_split > 1:
        yield Rejection("stream-K", f"K is split already, GlobalSplitU {schedule.global_split} would do it again")
    if not schedule.streams and schedule.stream_full_tiles:
        full = f"StreamKFullTiles {schedule.stream_full_tiles}"
        yield Rejection("stream-K", f"{full} means nothing without StreamKGrid")
    if schedule.stream_grid > INT_MAX:
        yield Rejection("stream-K", f"StreamKGrid {schedule.stream_grid}, at most {INT_MAX} work-groups")
    unrolled = schedule.thread_tile[0] // schedule.vector * schedule.thread_tile[1] * schedule.loop_unroll
    if unrolled > UNROLLED_MAX:
        yield Rejection("unrolled code", f"{unrolled} multiply-adds in the inner loop, at most {UNROLLED_MAX}")


def depth(schedule: OpenCLSchedule) -> Iterator[Rejection]:
    """A rejection unless DepthU, LoopUnroll and LocalSplitU agree."""
    if schedule.depth != schedule.loop_unroll * schedule.local_split:
        yield Rejection(
            "depth",
            f"DepthU {schedule.depth} is not LoopUnroll {schedule.loop_unroll} x LocalSplitU {schedule.local_split}",
        )


def compiled(schedule: OpenCLSchedule, facts: Sequence[CompiledFacts], target: Target) -> Iterator[Rejection]:
    """Rejections by what the compiler reports: work-items that its registers allow, and local memory."""
    for fact in facts:
        items = {"gemm": schedule.work_items}.get(fact.entry, REDUCTION_ITEMS if fact.entry in SUMS else 1)
        yield from too_much_for_program(fact, items, target)


def loads(tile: TileLoads) -> Iterator[Rejection]:
    """A rejection unless all work-items load the same number of vectors, at least one, in whole rows. As in Tensile."""
    part = f"the tile of {tile.operand} ({tile.contiguous} contiguous x {tile.across})"
    each = tile.work_items * tile.vector
    if tile.elements % each:
        yield Rejection(
            "tile loads",
            f"{part} has {tile.elements} elements, not a multiple of {tile.work_items} work-items x VectorWidth "
            f"{tile.vector}",
        )
        return
    if tile.contiguous % (tile.coalesced * tile.vector):
        yield Rejection(
            "coalesced loads",
            f"{part} is not NumLoadsCoalesced{tile.operand} {tile.coalesced} x VectorWidth {tile.vector} wide",
        )
        return
    if tile.per_item % tile.coalesced or tile.across % tile.rows:
        yield Rejection(
            "coalesced loads",
            f"{part}: {tile.per_item} loads a work-item do not fall into NumLoadsCoalesced{tile.operand} "
            f"{tile.coalesced} columns of whole rows",
        )


def problem_fits(schedule: OpenCLSchedule, problem: Problem, plan: Plan, target: Target) -> Iterator[Rejection]:
    """Rejections of sizes beyond 32-bit indices, of grids that cannot be launched, and of too large buffers."""
    gemm = Gemm.of(problem)
    tiles = schedule.tiles(gemm)
    counted = {
        "M": gemm.m + schedule.macro_tile[0],
        "N": gemm.n + schedule.macro_tile[1],
        "K": gemm.k + schedule.depth,
    }
    for name, value in counted.items():
        if value > INT_MAX:
            yield Rejection("index range", f"{name} rounded up to whole tiles is {value}, beyond 2^31 - 1")
    if tiles[0] * max(tiles[1], schedule.mapping) > INT_MAX:
        yield Rejection("grid", f"{tiles[0]} x {tiles[1]} tiles cannot be counted in 32 bits")
    if gemm.batch * schedule.global_split > GRID_MAX:
        yield Rejection(
            "grid",
            f"batch {gemm.batch} x GlobalSplitU {schedule.global_split}, at most {GRID_MAX} work-groups deep",
        )
    buffers = allocations(problem, plan.workspace_bytes)
    for name, size in buffers.items():
        if size > target.max_allocation_bytes:
            most = f"the largest buffer may have {target.max_allocation_bytes}"
            yield Rejection("maximum allocation", f"{name}: {size} bytes, {most}")
    if (total := sum(buffers.values())) > target.global_memory_bytes:
        have = f"the device has {target.global_memory_bytes}"
        yield Rejection("device memory", f"operands and workspace: {total} bytes, {have}")
