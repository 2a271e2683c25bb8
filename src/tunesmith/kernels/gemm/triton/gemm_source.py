"""The jit functions of `dense`: one for each schedule. Everyone without Triton reads this file as text.

Operands are column-major. What belongs together travels as a tuple: `inputs` and `outputs` are where the matrices lie,
`sizes` are M, N and K; TILE is the macro tile with the depth of an iteration, LOADS and DOT say how operands are
brought in and multiplied, EPILOGUE what becomes of the sums.
"""
# ruff: noqa: N803, N806

import triton
import triton.language as tl

from tunesmith.kernels.gemm.triton.epilogue_source import finished, scaled
from tunesmith.kernels.gemm.triton.loads_source import fetched, multiple, wait_for_launch_before


@triton.jit  # type: ignore[untyped-decorator]
def tile_at(number, tiles_m, tiles_n, MAPPING: tl.constexpr):  # type: ignore[no-untyped-def]
    """The place of a tile: blocks of MAPPING tile columns, in them row by row, so that neighbours share operands."""
    block = MAPPING * tiles_m
    first = number // block * MAPPING
    columns = tl.minimum(tiles_n - first, MAPPING)
    within = number % block
    return within // columns, first + within % columns


@triton.jit  # type: ignore[untyped-decorator]
def product(  # type: ignore[no-untyped-def]
    inputs,
    sizes,
    batch,
    first_m,
    first_n,
    begin,
    end,
    TILE: tl.constexpr,
    LOADS: tl.constexpr,
    DOT: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):
    """Sums over the steps `begin` to `end` along K for one tile: M x N elements, or swapped N x M."""
    a, b, lda, ldb, stride_a, stride_b = inputs
    m, n, k = sizes
    TILE_M: tl.constexpr = TILE[0]
    TILE_N: tl.constexpr = TILE[1]
    DEPTH: tl.constexpr = TILE[2]
    A_ALONG_K: tl.constexpr = LOADS[0]
    B_ALONG_K: tl.constexpr = LOADS[1]
    BY_TMA: tl.constexpr = LOADS[2]
    WIDTH: tl.constexpr = LOADS[3]
    SWAP: tl.constexpr = DOT[0]
    PRECISION: tl.constexpr = DOT[1]
    INTEGERS: tl.constexpr = DOT[2]
    IN_NARROW_SUMS: tl.constexpr = DOT[3]
    SUMS: tl.constexpr = tl.int32 if INTEGERS else tl.float32
    sums = tl.zeros((TILE_N, TILE_M) if SWAP else (TILE_M, TILE_N), dtype=SUMS)
    for step in tl.range(begin, end, DEPTH, warp_specialize=SPECIALIZE):
        of_a = fetched(a, lda, stride_a, batch, first_m, m, step, k, TILE_M, DEPTH, A_ALONG_K, BY_TMA, WIDTH)
        of_b = fetched(b, ldb, stride_b, batch, first_n, n, step, k, TILE_N, DEPTH, B_ALONG_K, BY_TMA, WIDTH)
        if SWAP:
            first, second = of_b, of_a.T
        else:
            first, second = of_a, of_b.T
        if IN_NARROW_SUMS > 0:
            sums = tl.dot(first, second, sums, max_num_imprecise_acc=IN_NARROW_SUMS)
        else:
            sums = tl.dot(first, second, sums, input_precision=PRECISION, out_dtype=SUMS)
    return sums


@triton.jit  # type: ignore[untyped-decorator]
def place_of(number, sizes, TILE: tl.constexpr, MAPPING: tl.constexpr):  # type: ignore[no-untyped-def]
    """The matrix of the batch and the first row and column of a tile, counted through all matrices."""
    tiles_m = tl.cdiv(sizes[0], TILE[0])
    tiles_n = tl.cdiv(sizes[1], TILE[1])
    tiles = tiles_m * tiles_n
    tile_m, tile_n = tile_at(number % tiles, tiles_m, tiles_n, MAPPING)
    return number // tiles, tile_m * TILE[0], tile_n * TILE[1]


@triton.jit  # type: ignore[untyped-decorator]
def whole_tile(  # type: ignore[no-untyped-def]
    number,
    inputs,
    outputs,
    sizes,
    TILE: tl.constexpr,
    MAPPING: tl.constexpr,
    LOADS: tl.constexpr,
    DOT: tl.constexpr,
    PARTS: tl.constexpr,
    EPILOGUE: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):
    """One macro tile of D. With K = 0 there is one iteration, of zeros."""
    batch, first_m, first_n = place_of(number, sizes, TILE, MAPPING)
    end = tl.maximum(sizes[2], 1)
    sums = product(inputs, sizes, batch, first_m, first_n, 0, end, TILE, LOADS, DOT, SPECIALIZE)
    finished(sums, outputs, sizes, batch, first_m, first_n, PARTS, DOT[0], EPILOGUE)


@triton.jit  # type: ignore[untyped-decorator]
def data_parallel(  # type: ignore[no-untyped-def]
    a,
    b,
    c,
    d,
    bias,
    scale_a,
    scale_b,
    m,
    n,
    k,
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
    SPECIALIZE: tl.constexpr,
    EARLY: tl.constexpr,
):
    """A work-group for each tile."""
    wait_for_launch_before(EARLY)
    inputs = (a, b, lda, ldb, stride_a, stride_b)
    outputs = (c, d, bias, ldc, ldd, stride_c, stride_d, scaled(alpha, scale_a, scale_b, SCALED), beta)
    whole_tile(tl.program_id(0), inputs, outputs, (m, n, k), TILE, MAPPING, LOADS, DOT, PARTS, EPILOGUE, SPECIALIZE)


@triton.jit  # type: ignore[untyped-decorator]
def persistent(  # type: ignore[no-untyped-def]
    a,
    b,
    c,
    d,
    bias,
    scale_a,
    scale_b,
    m,
    n,
    k,
    tiles,
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
    SPECIALIZE: tl.constexpr,
    FLATTEN: tl.constexpr,
    EARLY: tl.constexpr,
):
    """As many work-groups as run at once, to which the `tiles` of all matrices are dealt in turn."""
    wait_for_launch_before(EARLY)
    inputs = (a, b, lda, ldb, stride_a, stride_b)
    outputs = (c, d, bias, ldc, ldd, stride_c, stride_d, scaled(alpha, scale_a, scale_b, SCALED), beta)
    for number in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN, warp_specialize=SPECIALIZE):
        whole_tile(number, inputs, outputs, (m, n, k), TILE, MAPPING, LOADS, DOT, PARTS, EPILOGUE, False)


@triton.jit  # type: ignore[untyped-decorator]
def split(  # type: ignore[no-untyped-def]
    a,
    b,
    parts,
    m,
    n,
    k,
    tiles,
    batches,
    each,
    longer,
    lda,
    ldb,
    stride_a,
    stride_b,
    TILE: tl.constexpr,
    MAPPING: tl.constexpr,
    LOADS: tl.constexpr,
    DOT: tl.constexpr,
    WIDTH: tl.constexpr,
    EARLY: tl.constexpr,
):
    """A work-group for each tile and each part of K: `each` iterations, in the first `longer` parts one more.

    The sums go to `parts` as compact batches of D, those of all tiles for the first part of K first; `add_parts` adds.
    """
    wait_for_launch_before(EARLY)
    DEPTH: tl.constexpr = TILE[2]
    part = tl.program_id(0) // tiles
    batch, first_m, first_n = place_of(tl.program_id(0) % tiles, (m, n, k), TILE, MAPPING)
    begin = part * each + tl.minimum(part, longer)
    end = begin + each + (part < longer).to(tl.int32)
    inputs = (a, b, lda, ldb, stride_a, stride_b)
    sums = product(inputs, (m, n, k), batch, first_m, first_n, begin * DEPTH, end * DEPTH, TILE, LOADS, DOT, False)
    if DOT[0]:
        at_m = first_m + tl.arange(0, sums.shape[1])[None, :]
        at_n = first_n + tl.arange(0, sums.shape[0])[:, None]
    else:
        at_m = first_m + tl.arange(0, sums.shape[0])[:, None]
        at_n = first_n + tl.arange(0, sums.shape[1])[None, :]
    column = multiple(m, WIDTH)
    matrix = (part * batches + batch).to(tl.int64) * n * column
    tl.store(parts + matrix + at_n.to(tl.int64) * column + at_m, sums, mask=(at_m < column) & (at_n < n))
