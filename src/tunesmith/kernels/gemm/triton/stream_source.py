"""The jit function of stream-K: a fixed grid, whole tiles in waves, then the last tiles' iterations shared evenly.

Nobody waits for a work-group of a higher number. A share is worked off from its end: first the tile that it leaves
unfinished, whose sums and flag are then there for the next work-group, which finishes that tile as the last thing that
it does. So a wait is short, and devices that start work-groups in the order of their numbers, as all do, make progress
even where several streams keep a part of the grid from running.
"""
# ruff: noqa: N803, N806

import triton
import triton.language as tl

from tunesmith.kernels.gemm.triton.epilogue_source import finished, scaled
from tunesmith.kernels.gemm.triton.gemm_source import place_of, product
from tunesmith.kernels.gemm.triton.loads_source import wait_for_launch_before


@triton.jit  # type: ignore[untyped-decorator]
def places(slots, slot, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where the sums of a work-group lie in the workspace."""
    within = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    return slots + slot * (ROWS * COLUMNS) + within


@triton.jit
def group_at(iteration, per_group, extra):  # type: ignore[no-untyped-def]
    """The work-group whose share has this iteration (`stream_k.Schedule.group_at`)."""
    longer = extra * (per_group + 1)
    if iteration < longer:
        group = iteration // (per_group + 1)
    else:
        group = extra + (iteration - longer) // tl.maximum(per_group, 1)
    return group


@triton.jit
def left_to_the_next(sums, slots, flags, group):  # type: ignore[no-untyped-def]
    """Sums over a part of a tile, for the work-group that finishes it; the flag says that they are there."""
    tl.store(places(slots, group, sums.shape[0], sums.shape[1]), sums)
    tl.debug_barrier()  # the flag must not overtake the stores of other work-items
    tl.atomic_xchg(flags + group, 1, sem="release", scope="gpu")


@triton.jit
def with_those_before(sums, slots, flags, first, group):  # type: ignore[no-untyped-def]
    """Our sums plus those of the work-groups from `first` on that began the tile, in the order of their parts."""
    for peer in tl.range(first, group):
        while tl.atomic_cas(flags + peer, 1, 1, sem="acquire", scope="gpu") != 1:
            pass
        tl.debug_barrier()  # no work-item reads before the one that waited is past the flag
        sums += tl.load(places(slots, peer, sums.shape[0], sums.shape[1]), cache_modifier=".cg")
    return sums


@triton.jit  # type: ignore[untyped-decorator]
def stream(  # type: ignore[no-untyped-def]
    a,
    b,
    c,
    d,
    bias,
    scale_a,
    scale_b,
    slots,
    flags,
    m,
    n,
    k,
    alone,
    iterations,
    per_group,
    extra,
    lda,
    ldb,
    ldc,
    ldd,
    stride_a,
    stride_b,
    stride_c,
    stride_d,
    alpha,
    beta,
    TILE: tl.constexpr,
    MAPPING: tl.constexpr,
    LOADS: tl.constexpr,
    DOT: tl.constexpr,
    PARTS: tl.constexpr,
    EPILOGUE: tl.constexpr,
    SCALED: tl.constexpr,
    EARLY: tl.constexpr,
):
    """`alone` tiles are dealt in turn; of the `iterations` of each of the others, a work-group has `per_group`, the
    first `extra` of them one more (`stream_k.Schedule`). `flags` are zero at first."""
    wait_for_launch_before(EARLY)
    DEPTH: tl.constexpr = TILE[2]
    inputs = (a, b, lda, ldb, stride_a, stride_b)
    outputs = (c, d, bias, ldc, ldd, stride_c, stride_d, scaled(alpha, scale_a, scale_b, SCALED), beta)
    sizes = (m, n, k)
    group = tl.program_id(0)
    number = group
    share = group * per_group + tl.minimum(group, extra)
    stop = share + per_group + (group < extra).to(tl.int64)
    # One loop for both kinds of tiles, since a second copy of all that is in it would take as long again to compile.
    while (number < alone) | (stop > share):
        is_whole = number < alone
        last_of_share = (stop - 1) // iterations
        origin = tl.where(is_whole, 0, last_of_share * iterations)
        start = tl.where(is_whole, 0, tl.maximum(share, origin))
        end = tl.where(is_whole, iterations, stop)
        tile = tl.where(is_whole, number, alone + last_of_share).to(tl.int32)
        batch, first_m, first_n = place_of(tile, sizes, TILE, MAPPING)
        begin_k = (start - origin).to(tl.int32) * DEPTH
        end_k = (end - origin).to(tl.int32) * DEPTH
        sums = product(inputs, sizes, batch, first_m, first_n, begin_k, end_k, TILE, LOADS, DOT, False)
        if end < origin + iterations:
            left_to_the_next(sums, slots, flags, group)
        else:
            if start > origin:
                first = group_at(origin, per_group, extra).to(tl.int32)
                sums = with_those_before(sums, slots, flags, first, group)
            finished(sums, outputs, sizes, batch, first_m, first_n, PARTS, DOT[0], EPILOGUE)
        number += tl.where(is_whole, tl.num_programs(0), 0)
        stop = tl.where(is_whole, stop, start)
