"""The rejections of the family: of a configuration, for a problem, and of a compiled program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunesmith.kernels.gemm.cuda.aligned import ALIGNMENT as TMA_ALIGNMENT
from tunesmith.kernels.gemm.cuda.aligned import needs_copy
from tunesmith.kernels.gemm.cuda_common import wrong_device, wrong_size
from tunesmith.problems.gemm import Gemm, is_interleaved
from tunesmith.records import CompiledFacts, Configuration, Problem, ProblemType, Rejection, Target

from .clusters import clusters_at_once
from .launch import COPIES, sides_of, workspace_bytes
from .operand_types import operand_type_of
from .schedule import WgmmaSchedule, Workspace
from .shape import COLUMN_STEP, EIGHT, MOST_IN_A_CLUSTER, WgmmaShape
from .text import ARCHITECTURE

MOST_BOX = 256
SIDES_OF_A_CLUSTER = {1, 2, 4}
"""Work-groups along M, or along N, of a cluster. Each fetches whole groups of 8 rows of the shared tile."""
FEW_SPILLED_BYTES = 64
"""Bytes that a work-item may spill: addresses and counts that are needed between tiles. Spilled sums are many more."""
REGISTERS_BESIDE_SUMS = 26
"""Registers of a work-item that an instruction needs beside its sums, as ptxas reports."""
MOST_ITERATIONS = 2**31 - 1


def rejections(config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
    shape = WgmmaShape.of(config, problem_type, target.local_memory_bytes)
    yield from wrong_device(target)
    if target.architecture != ARCHITECTURE:
        yield Rejection("architecture", f"wgmma is {ARCHITECTURE}'s alone, the device has {target.architecture}")
    if is_interleaved(problem_type):
        yield Rejection("batch layout", f"{problem_type.name}: this family does not compute interleaved batches")
    yield from _wrong_types(shape, problem_type)
    yield from _wrong_tile(shape, target)
    wrong_cluster = tuple(_wrong_cluster(config, shape))
    yield from wrong_cluster or _wrong_split(config, shape, target)


def _wrong_types(shape: WgmmaShape, problem_type: ProblemType) -> Iterator[Rejection]:
    if operand_type_of(problem_type) is None:
        letter = problem_type.fields.word("DataType")
        yield Rejection("data type", f"{problem_type.name}: the tensor cores here do not multiply {letter} exactly")
    if shape.by_tma and shape.dest_bytes > 2:
        yield Rejection("store path", f"TMA writes D from shared memory in 16-bit types only, not {shape.dest}")
    if shape.promote_every and not shape.operand_type.short_sums:
        yield Rejection("promotion", f"sums of {shape.operand_type.ptx} products have all their bits")


def _wrong_tile(shape: WgmmaShape, target: Target) -> Iterator[Rejection]:
    if shape.columns % COLUMN_STEP or shape.columns > MOST_BOX:
        yield Rejection("tile shape", f"{shape.columns} columns, not a multiple of {COLUMN_STEP} up to {MOST_BOX}")
    if not 1 <= shape.warp_groups <= 3:
        yield Rejection("work-group size", f"{shape.warp_groups} warp groups multiply; 1 to 3 have the registers")
    elif (need := shape.columns // 2 + REGISTERS_BESIDE_SUMS) > shape.registers_at_launch:
        what = f"{need} for the instruction, {shape.registers_at_launch} for each of {shape.work_items} work-items"
        yield Rejection("registers", what)
    if shape.stages < 2:
        yield Rejection("local memory", f"two stages do not fit into {target.local_memory_bytes} bytes")
    elif (need := shape.shared_bytes) > target.local_memory_bytes:
        yield Rejection("local memory", f"{need} bytes for the stages, the device has {target.local_memory_bytes}")


def _wrong_cluster(config: Configuration, shape: WgmmaShape) -> Iterator[Rejection]:
    rows, columns, most = shape.cluster_rows, shape.cluster_columns, MOST_IN_A_CLUSTER
    if {rows, columns} - SIDES_OF_A_CLUSTER or shape.sharers > most:
        yield Rejection(
            "cluster", f"{rows} x {columns} work-groups; 1, 2 or 4 share a tile, a cluster has {most} at most"
        )
    elif shape.y_along_k and shape.columns % (rows * EIGHT):
        yield Rejection("cluster", f"{shape.columns} columns, fetched by {rows} work-groups in multiples of {EIGHT}")
    if config.integers("ClusterShape")[2:] == (1,):
        yield Rejection("cluster", "one work-group along K is no cluster; leave the third number out")
    if not shape.is_joint:
        return
    parts = shape.cluster_parts
    if parts > most:
        yield Rejection("cluster", f"{parts} work-groups along K; a cluster has {most} at most")
    if shape.sharers > 1:
        yield Rejection("cluster", "work-groups along K, and more than one along M or N")
    if config.integer("StreamKGrid"):
        yield Rejection("cluster", "stream-K may leave no iteration for a work-group along K")
    if not shape.holds(shape.least_parts):
        sums = f"the sums of {shape.least_parts} slices do not fit where {shape.stages} stages were"
        yield Rejection("local memory", sums)


def _wrong_split(config: Configuration, shape: WgmmaShape, target: Target) -> Iterator[Rejection]:
    splits, grid = config.integer("GlobalSplitU"), config.integer("StreamKGrid")
    if grid and splits > 1:
        yield Rejection("stream-K", f"K is split already, GlobalSplitU {splits} would do it again")
    at_once = clusters_at_once(shape.sharers, target.compute_units)
    if grid > at_once * shape.sharers:
        clusters = f"{at_once} clusters of {shape.sharers}" if shape.sharers > 1 else f"{at_once}"
        yield Rejection("stream-K", f"{grid} work-groups wait for each other, the device runs {clusters} at once")
    if splits > at_once:
        yield Rejection("global split", f"{splits} parts of a tile wait for each other, {at_once} run at once")
    if grid % shape.sharers:
        yield Rejection("stream-K", f"{grid} work-groups in clusters of {shape.sharers}")
    if not grid and config.integer("StreamKFullTiles"):
        full = f"StreamKFullTiles {config.integer('StreamKFullTiles')}"
        yield Rejection("stream-K", f"{full} means nothing without StreamKGrid")


def rejections_for(config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
    gemm, shape = Gemm.of(problem), WgmmaShape.of(config, problem.type)
    if not all(problem.sizes):
        yield Rejection("empty", f"sizes {problem.sizes}: TMA has no view of an operand without elements")
        return
    schedule = WgmmaSchedule.of(config, shape, gemm, target.compute_units)
    workspace = Workspace.of(schedule, shape)
    sides = sides_of(gemm, shape, workspace.size)
    copies = (side.copy.launch(COPIES, target).grid[0] for side in sides.values() if side.copy)
    groups = max((schedule.grid * schedule.cluster, *copies))
    yield from wrong_size(problem, groups, gemm.batch, workspace_bytes(sides, workspace), target)
    if schedule.split_iterations > MOST_ITERATIONS:
        yield Rejection("index range", f"{schedule.split_iterations} iterations to share, at most {MOST_ITERATIONS}")
    if (splits := config.integer("GlobalSplitU") * schedule.cluster_parts) > schedule.iterations:
        yield Rejection("global split", f"{splits} parts of {schedule.iterations} iterations leave some without work")
    if schedule.is_joint and schedule.shares > schedule.running:
        clusters = f"{schedule.shares} clusters wait for each other, {schedule.running} run at once"
        yield Rejection("global split", clusters)
    if not shape.cluster_parts and schedule.alone > schedule.running:
        yield Rejection("global split", f"{schedule.alone} tiles, and {schedule.running} clusters run at once")
    if shape.by_tma and gemm.m * shape.dest_bytes % TMA_ALIGNMENT:
        yield Rejection("TMA store", f"columns of {gemm.m} elements; the last 16 bytes would be written whole")
    if shape.by_tma and needs_copy(gemm.ldd, gemm.stride_d, gemm.batch, shape.dest_bytes):
        aligned = f"multiples of {TMA_ALIGNMENT // shape.dest_bytes}"
        yield Rejection("TMA store", f"D has strides {gemm.ldd} and {gemm.stride_d} elements, not {aligned}")


def rejections_compiled(facts: Sequence[CompiledFacts]) -> Iterator[Rejection]:
    for fact in facts:
        if fact.spill_bytes and fact.spill_bytes > FEW_SPILLED_BYTES:
            yield Rejection("spills", f"{fact.spill_bytes} bytes of a work-item's sums live in memory")
