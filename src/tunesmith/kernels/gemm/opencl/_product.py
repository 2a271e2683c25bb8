"""The launches of a product, whichever way its work is cut: a work-group a tile, a tile by split-K, or stream-K."""

from __future__ import annotations

from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Launch, WorkspaceArgument

from . import _stream
from ._launches import grid, integers, output, partial_sums_bytes, sum_of_splits
from ._schedule import Schedule


def sums_bytes(schedule: Schedule, gemm: Gemm) -> int:
    """What sums over parts of K need of the workspace."""
    if schedule.streams:
        return _stream.shares_bytes(schedule, gemm)
    return partial_sums_bytes(gemm, schedule.global_split)


def product(
    schedule: Schedule,
    gemm: Gemm,
    factors: tuple[Argument, ...],
    sums: WorkspaceArgument,
    work_group: tuple[int, int, int],
) -> tuple[Launch, ...]:
    """`factors` are address, leading dimension and stride of A, then of B; `sums` is the place for `sums_bytes`."""
    if schedule.streams:
        multiply = _stream.multiply(schedule, gemm, factors, sums, work_group)
        return (multiply, *_stream.sum_of_shares(schedule, gemm, sums))
    split, tiles = schedule.global_split, schedule.tiles(gemm)
    sizes = integers(gemm.m, gemm.n, gemm.k, *tiles, schedule.depth_per_split(gemm))
    multiply = Launch(
        module=0,
        entry="gemm",
        grid=grid(tiles, gemm.batch * split),
        work_group=work_group,
        arguments=(*output(gemm, split, sums), *factors, *sizes),
    )
    return (multiply, *sum_of_splits(gemm, split, sums))
