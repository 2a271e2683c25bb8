"""What the two families launch for stream-K: a fixed grid, then a launch that adds the sums over parts of a tile.

OpenCL promises no progress of one work-group while another waits, so nobody waits: owners leave their sums in the
workspace as everybody else does. See `stream.cl.j2`.
"""

from __future__ import annotations

import math

import numpy as np

from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Launch, WorkspaceArgument

from ._launches import GRID_MAX, REDUCTION_ITEMS, final, integers, longs
from ._schedule import Schedule


def shares_bytes(schedule: Schedule, gemm: Gemm) -> int:
    """A compact macro tile for each place that the schedule may need, and never nothing: the kernel has an argument
    for it."""
    slots = schedule.stream(gemm).slots
    return max(1, slots * math.prod(schedule.macro_tile) * np.dtype(gemm.dtype).itemsize)


def multiply(
    schedule: Schedule,
    gemm: Gemm,
    factors: tuple[Argument, ...],
    sums: WorkspaceArgument,
    work_group: tuple[int, int, int],
) -> Launch:
    """The grid that computes everything; `factors` as in `product`."""
    stream, (tiles0, tiles1) = schedule.stream(gemm), schedule.tiles(gemm)
    return Launch(
        module=0,
        entry="gemm",
        grid=(stream.grid, 1, 1),
        work_group=work_group,
        arguments=(
            *final(gemm),
            sums,
            *factors,
            *integers(gemm.m, gemm.n, gemm.k, tiles0, tiles1, stream.iterations),
            *longs(stream.alone, stream.per_group, stream.extra),
        ),
    )


def sum_of_shares(schedule: Schedule, gemm: Gemm, sums: WorkspaceArgument) -> tuple[Launch, ...]:
    """The launch that follows where a tile has sums of several work-groups: D = alpha (these, in order) + beta C."""
    stream, (tiles0, tiles1) = schedule.stream(gemm), schedule.tiles(gemm)
    if not stream.shared:
        return ()
    launch = Launch(
        module=0,
        entry="sum_of_shares",
        grid=(-(-math.prod(schedule.macro_tile) // REDUCTION_ITEMS), min(stream.streamed, GRID_MAX), 1),
        work_group=(REDUCTION_ITEMS, 1, 1),
        arguments=(
            *final(gemm),
            sums,
            *integers(gemm.m, gemm.n, tiles0, tiles1, stream.iterations),
            *longs(stream.alone, stream.streamed, stream.per_group, stream.extra, stream.grid),
        ),
    )
    return (launch,)
