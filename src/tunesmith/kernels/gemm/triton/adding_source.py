"""The jit function that adds many parts of K to a small D. Everyone without Triton reads this file as text."""
# ruff: noqa: N803

import triton
import triton.language as tl

from tunesmith.kernels.gemm.triton.epilogue_source import scaled, stored
from tunesmith.kernels.gemm.triton.loads_source import multiple, wait_for_launch_before

AT_ONCE = tl.constexpr(16)
"""Parts that are read at a time: each reading takes as long as the memory needs to answer."""
ADDED_M = tl.constexpr(64)
ADDED_N = tl.constexpr(2)
"""Elements of D that a work-group makes. A D that is cut into many parts is small, and needs many work-groups."""


@triton.jit  # type: ignore[untyped-decorator]
def add_many_parts(  # type: ignore[no-untyped-def]
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
    """As `add_parts` of `epilogue_source`. The order is fixed here, too, so that results repeat bit by bit."""
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
    order = tl.arange(0, AT_ONCE)[:, None, None]
    sums = tl.zeros((ADDED_N, ADDED_M), parts.dtype.element_ty)
    for first in tl.range(0, count, AT_ONCE):
        part = first + order
        read = tl.load(at[None, :, :] + part * (batches * matrix), mask=inside[None, :, :] & (part < count), other=0)
        sums += tl.sum(read, axis=0)
    outputs = (c, d, bias, ldc, ldd, stride_c, stride_d, scaled(alpha, scale_a, scale_b, SCALED), beta)
    stored(sums, outputs, (m, n, n), batch, first_m, first_n, True, EPILOGUE)
