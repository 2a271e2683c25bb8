"""Jit functions that turn sums into elements of D and store them. Everyone without Triton reads this file as text."""
# ruff: noqa: N803, N806, RET505

import triton
import triton.language as tl

from tunesmith.kernels.gemm.triton.loads_source import multiple, wait_for_launch_before


@triton.jit  # type: ignore[untyped-decorator]
def activated(x, ACTIVATION: tl.constexpr):  # type: ignore[no-untyped-def]
    """What is applied before C is added; gelu is the exact one."""
    if ACTIVATION == "relu":
        return tl.maximum(x, 0)
    elif ACTIVATION == "gelu":
        return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    elif ACTIVATION == "silu":
        return x / (1.0 + tl.exp(-x))
    else:
        return x


@triton.jit  # type: ignore[untyped-decorator]
def scaled(alpha, scale_a, scale_b, SCALED: tl.constexpr):  # type: ignore[no-untyped-def]
    """The factor of all products: alpha, times the scales in the device's memory."""
    if SCALED:
        return alpha * tl.load(scale_a) * tl.load(scale_b)
    else:
        return alpha


@triton.jit  # type: ignore[untyped-decorator]
def result_of(  # type: ignore[no-untyped-def]
    sums,
    bias,
    at_bias,
    has_bias,
    at_c,
    inside,
    factor,
    beta,
    BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BETA: tl.constexpr,
):
    """activation(factor sums + bias) + beta C in the type of C, where `inside`; with beta = 0, C is not read.

    `at_bias` are places, valid where `has_bias`, of numbers to be broadcast to the shape of the sums.
    """
    result = sums * factor
    if BIAS:
        result += tl.load(bias + at_bias, mask=has_bias, other=0.0).to(sums.dtype)
    result = activated(result, ACTIVATION)
    if BETA:  # by the mask and not by a branch, which would keep Triton from specialising warps
        result += beta * tl.load(at_c, mask=inside & (beta != 0), other=0.0).to(sums.dtype)
    return result.to(at_c.dtype.element_ty)


@triton.jit  # type: ignore[untyped-decorator]
def stored(  # type: ignore[no-untyped-def]
    sums,
    outputs,
    sizes,
    batch,
    first_m,
    first_n,
    SWAP: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """The elements of D from (`first_m`, `first_n`) on that `sums` are of: rows are along M, with SWAP along N."""
    c, d, bias, ldc, ldd, stride_c, stride_d, factor, beta = outputs
    m, n, _ = sizes
    BIAS: tl.constexpr = EPILOGUE[0]
    ACTIVATION: tl.constexpr = EPILOGUE[1]
    BETA: tl.constexpr = EPILOGUE[2]
    BY_TMA: tl.constexpr = EPILOGUE[3]
    WIDTH: tl.constexpr = EPILOGUE[4]
    if SWAP:
        at_m = first_m + tl.arange(0, sums.shape[1])[None, :]
        at_n = first_n + tl.arange(0, sums.shape[0])[:, None]
    else:
        at_m = first_m + tl.arange(0, sums.shape[0])[:, None]
        at_n = first_n + tl.arange(0, sums.shape[1])[None, :]
    inside = (at_m < multiple(m, WIDTH)) & (at_n < n)
    at_c = c + batch.to(tl.int64) * multiple(stride_c, WIDTH) + at_n.to(tl.int64) * multiple(ldc, WIDTH) + at_m
    result = result_of(sums, bias, at_m, at_m < m, at_c, inside, factor, beta, BIAS, ACTIVATION, BETA)
    if BY_TMA:
        if SWAP:
            d.store([batch, first_n, first_m], result.reshape(1, sums.shape[0], sums.shape[1]))
        else:
            d.store([batch, first_n, first_m], result.T.reshape(1, sums.shape[1], sums.shape[0]))
    else:
        at_d = d + batch.to(tl.int64) * multiple(stride_d, WIDTH) + at_n.to(tl.int64) * multiple(ldd, WIDTH) + at_m
        tl.store(at_d, result, mask=inside)


@triton.jit
def halves(sums):  # type: ignore[no-untyped-def]
    """The left and the right half of the columns: what each work-item has of them stays with it."""
    return sums.reshape(sums.shape[0], 2, sums.shape[1] // 2).permute(0, 2, 1).split()


@triton.jit  # type: ignore[untyped-decorator]
def finished(  # type: ignore[no-untyped-def]
    sums,
    outputs,
    sizes,
    batch,
    first_m,
    first_n,
    PARTS: tl.constexpr,
    SWAP: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """`stored`, in PARTS of the columns one after the other, so that less is in flight at once."""
    if PARTS == 1:
        stored(sums, outputs, sizes, batch, first_m, first_n, SWAP, EPILOGUE)
    else:
        left, right = halves(sums)
        further_m = first_m + sums.shape[1] // 2 if SWAP else first_m
        further_n = first_n if SWAP else first_n + sums.shape[1] // 2
        finished(left, outputs, sizes, batch, first_m, first_n, PARTS // 2, SWAP, EPILOGUE)
        finished(right, outputs, sizes, batch, further_m, further_n, PARTS // 2, SWAP, EPILOGUE)


ADDED_M = tl.constexpr(256)
ADDED_N = tl.constexpr(2)
"""Elements of D that a work-group of `add_parts` makes: more of them would leave a small D to few work-groups."""


@triton.jit  # type: ignore[untyped-decorator]
def add_parts(  # type: ignore[no-untyped-def]
    parts,
    c,
    d,
    bias,
    scale_a,
    scale_b,
    m,
    n,
    batches,
    count,
    ldc,
    ldd,
    stride_c,
    stride_d,
    alpha,
    beta,
    EPILOGUE: tl.constexpr,
    SCALED: tl.constexpr,
    EARLY: tl.constexpr,
):
    """D from `count` sums over a part of K each, which lie in `parts` one after the other as compact batches of D.

    They are added in this order, so that results repeat bit by bit. Batch along program axis 1.
    """
    wait_for_launch_before(EARLY)
    tiles_m = tl.cdiv(m, ADDED_M)
    first_m = tl.program_id(0) % tiles_m * ADDED_M
    first_n = tl.program_id(0) // tiles_m * ADDED_N
    batch = tl.program_id(1)
    at_m = first_m + tl.arange(0, ADDED_M)[None, :]
    at_n = first_n + tl.arange(0, ADDED_N)[:, None]
    column = multiple(m, EPILOGUE[4])
    inside = (at_m < column) & (at_n < n)
    matrix = n.to(tl.int64) * column
    at = parts + batch * matrix + at_n.to(tl.int64) * column + at_m
    sums = tl.load(at, mask=inside, other=0)
    for part in tl.range(1, count):
        sums += tl.load(at + part * batches * matrix, mask=inside, other=0)
    outputs = (c, d, bias, ldc, ldd, stride_c, stride_d, scaled(alpha, scale_a, scale_b, SCALED), beta)
    stored(sums, outputs, (m, n, n), batch, first_m, first_n, True, EPILOGUE)
