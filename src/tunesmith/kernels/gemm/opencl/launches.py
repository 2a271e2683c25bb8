"""The launches of a product, with a work-group for each tile, with split-K, or with stream-K.

OpenCL does not promise that a work-group makes progress while another waits, so no work-group waits. With stream-K, the
owner of a tile leaves its sums in the workspace like every other work-group, and a second launch adds them. See
`stream.cl.j2`.
"""

from __future__ import annotations

import math

import numpy as np

from tunesmith.kernels.gemm.launching import GRID_MAX, grid, integers, longs, output_arguments
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Launch, WorkspaceArgument

from .schedule import OpenCLSchedule

REDUCTION_ITEMS = 256
"""Work-items of a work-group that adds partial sums; each adds the sums of elements of one row of D."""
SUMS = ("sum_of_splits", "sum_of_shares")
"""The second launches, which add partial sums."""


def sums_bytes(schedule: OpenCLSchedule, gemm: Gemm) -> int:
    """Bytes of the workspace for sums over parts of K.

    Split-K needs a compact M x N matrix for each part of K and each matrix of the batch. Stream-K needs a compact macro
    tile for each slot of the schedule, and at least one byte, since the kernel has an argument for it.
    """
    size = np.dtype(gemm.dtype).itemsize
    if schedule.streams:
        return max(1, schedule.stream(gemm).slots * math.prod(schedule.macro_tile) * size)
    split = schedule.global_split
    return split * gemm.batch * gemm.m * gemm.n * size if split > 1 else 0


def product(
    schedule: OpenCLSchedule,
    gemm: Gemm,
    inputs: tuple[Argument, ...],
    sums: WorkspaceArgument,
    work_group: tuple[int, int, int],
) -> tuple[Launch, ...]:
    """The launches of the product.

    `inputs` are address, leading dimension and stride of A, then of B. `sums` is the workspace for `sums_bytes`.
    Stream-K has a fixed grid, and a second launch if several work-groups share a tile: it adds their sums in order.
    """
    split, tiles = schedule.global_split, schedule.tiles(gemm)
    if schedule.streams:
        stream = schedule.stream(gemm)
        sizes = integers(gemm.m, gemm.n, gemm.k, *tiles, stream.iterations)
        shares = longs(stream.alone, stream.per_group, stream.extra)
        arguments = (*output_arguments(gemm), sums, *inputs, *sizes, *shares)
        multiply = Launch(0, "gemm", (stream.grid, 1, 1), work_group, arguments)
        if not stream.shared:
            return (multiply,)
        groups = (-(-math.prod(schedule.macro_tile) // REDUCTION_ITEMS), min(stream.streamed, GRID_MAX), 1)
        sizes = integers(gemm.m, gemm.n, *tiles, stream.iterations)
        shares = longs(stream.alone, stream.streamed, stream.per_group, stream.extra, stream.grid)
        return multiply, _sum("sum_of_shares", groups, (*output_arguments(gemm), sums, *sizes, *shares))
    output = (sums, *longs(gemm.m, gemm.m * gemm.n)) if split > 1 else output_arguments(gemm)
    sizes = integers(gemm.m, gemm.n, gemm.k, *tiles, schedule.depth_per_split(gemm))
    multiply = Launch(0, "gemm", grid(tiles, gemm.batch * split), work_group, (*output, *inputs, *sizes))
    if split == 1:
        return (multiply,)
    groups = (-(-gemm.m // REDUCTION_ITEMS), min(gemm.n, GRID_MAX), gemm.batch)
    return multiply, _sum("sum_of_splits", groups, (*output_arguments(gemm), sums, *integers(gemm.m, gemm.n)))


def _sum(entry: str, groups: tuple[int, int, int], arguments: tuple[Argument, ...]) -> Launch:
    return Launch(0, entry, groups, (REDUCTION_ITEMS, 1, 1), arguments)
