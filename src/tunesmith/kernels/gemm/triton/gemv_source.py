"""The jit functions of `gemv`: a matrix times a vector. Everyone without Triton reads this file as text."""
# ruff: noqa: N803, N806

import triton
import triton.language as tl

from tunesmith.kernels.gemm.triton.epilogue_source import result_of, scaled
from tunesmith.kernels.gemm.triton.loads_source import fetched, wait_for_launch_before


@triton.jit  # type: ignore[untyped-decorator]
def vector_stored(  # type: ignore[no-untyped-def]
    sums,
    outputs,
    batch,
    rows,
    extent,
    ALONG_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """The elements `rows` of D, a column, or a row that has one number of the bias in common."""
    c, d, bias, step_c, step_d, stride_c, stride_d, factor, beta = outputs
    BIAS: tl.constexpr = EPILOGUE[0]
    ACTIVATION: tl.constexpr = EPILOGUE[1]
    BETA: tl.constexpr = EPILOGUE[2]
    at = rows.to(tl.int64)
    at_bias = rows if ALONG_M else rows * 0
    inside = rows < extent
    at_c = c + batch.to(tl.int64) * stride_c + at * step_c
    result = result_of(sums, bias, at_bias, inside, at_c, inside, factor, beta, BIAS, ACTIVATION, BETA)
    tl.store(d + batch.to(tl.int64) * stride_d + at * step_d, result, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def gemv(  # type: ignore[no-untyped-def]
    matrix,
    vector,
    parts,
    c,
    d,
    bias,
    scale_a,
    scale_b,
    extent,
    k,
    batches,
    each,
    longer,
    leading,
    stride_matrix,
    step_vector,
    stride_vector,
    step_c,
    step_d,
    stride_c,
    stride_d,
    alpha,
    beta,
    ROWS: tl.constexpr,
    DEPTH: tl.constexpr,
    ALONG_K: tl.constexpr,
    ALONG_M: tl.constexpr,
    WIDTH: tl.constexpr,
    INTEGERS: tl.constexpr,
    SPLIT: tl.constexpr,
    EPILOGUE: tl.constexpr,
    SCALED: tl.constexpr,
    EARLY: tl.constexpr,
):
    """ROWS elements of D, of `extent`, or their sums over a part of K: `each` iterations, in the first `longer` parts
    one more. Parts of K along program axis 1, batch along 2; `add_vectors` adds where K is split."""
    wait_for_launch_before(EARLY)
    SUMS: tl.constexpr = tl.int32 if INTEGERS else tl.float32
    first = tl.program_id(0) * ROWS
    part = tl.program_id(1)
    batch = tl.program_id(2)
    begin = part * each + tl.minimum(part, longer)
    end = begin + each + (part < longer).to(tl.int32)
    at_vector = vector + batch.to(tl.int64) * stride_vector
    products = tl.zeros((ROWS, DEPTH), dtype=SUMS)
    for step in tl.range(begin * DEPTH, end * DEPTH, DEPTH):
        tile = fetched(
            matrix, leading, stride_matrix, batch, first, extent, step, k, ROWS, DEPTH, ALONG_K, False, WIDTH
        )
        steps = step + tl.arange(0, DEPTH)
        numbers = tl.load(at_vector + steps.to(tl.int64) * step_vector, mask=steps < k, other=0.0)
        products += tile.to(SUMS) * numbers.to(SUMS)[None, :]
    sums = tl.sum(products, axis=1)
    rows = first + tl.arange(0, ROWS)
    if SPLIT:
        at = (part * batches + batch).to(tl.int64) * extent + rows
        tl.store(parts + at, sums, mask=rows < extent)
    else:
        outputs = (c, d, bias, step_c, step_d, stride_c, stride_d, scaled(alpha, scale_a, scale_b, SCALED), beta)
        vector_stored(sums, outputs, batch, rows, extent, ALONG_M, EPILOGUE)


ADDED = tl.constexpr(256)
"""Elements of D that a work-group of `add_vectors` makes."""


@triton.jit  # type: ignore[untyped-decorator]
def add_vectors(  # type: ignore[no-untyped-def]
    parts,
    c,
    d,
    bias,
    scale_a,
    scale_b,
    extent,
    batches,
    count,
    step_c,
    step_d,
    stride_c,
    stride_d,
    alpha,
    beta,
    ALONG_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
    SCALED: tl.constexpr,
    EARLY: tl.constexpr,
):
    """D from `count` sums over a part of K each, added in this order. Batch along program axis 1."""
    wait_for_launch_before(EARLY)
    batch = tl.program_id(1)
    rows = tl.program_id(0) * ADDED + tl.arange(0, ADDED)
    at = parts + batch.to(tl.int64) * extent + rows
    sums = tl.load(at, mask=rows < extent, other=0)
    for part in tl.range(1, count):
        sums += tl.load(at + part * batches.to(tl.int64) * extent, mask=rows < extent, other=0)
    outputs = (c, d, bias, step_c, step_d, stride_c, stride_d, scaled(alpha, scale_a, scale_b, SCALED), beta)
    vector_stored(sums, outputs, batch, rows, extent, ALONG_M, EPILOGUE)
