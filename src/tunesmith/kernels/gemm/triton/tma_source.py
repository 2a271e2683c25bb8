"""The jit function of `tma`. Imported only where Triton is; everyone else reads this file as text."""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def gemm(  # type: ignore[no-untyped-def]
    a,
    b,
    c,
    d,
    m,
    n,
    k,
    ldc,
    ldd,
    stride_c,
    stride_d,
    alpha,
    beta,
    TILE_M: tl.constexpr,  # noqa: N803 (Triton's custom for constants)
    TILE_N: tl.constexpr,  # noqa: N803
    DEPTH: tl.constexpr,  # noqa: N803
    A_ALONG_K: tl.constexpr,  # noqa: N803
    B_ALONG_K: tl.constexpr,  # noqa: N803
    PRECISION: tl.constexpr,  # noqa: N803
):
    """One macro tile of D = alpha op(A) op(B) + beta C, column-major, batch along program axis 2.

    Computed as its transpose, N x M, which is how D lies in memory. `a` and `b` are 3-D descriptors (batch, outer,
    contiguous); what they read beyond the matrix is zero.
    """
    tiles_m = tl.cdiv(m, TILE_M)
    first_m = (tl.program_id(0) % tiles_m) * TILE_M
    first_n = (tl.program_id(0) // tiles_m) * TILE_N
    batch = tl.program_id(2)
    sums = tl.zeros((TILE_N, TILE_M), dtype=tl.float32)
    for first_k in tl.range(0, k, DEPTH):
        if B_ALONG_K:
            of_b = b.load([batch, first_n, first_k]).reshape(TILE_N, DEPTH)
        else:
            of_b = b.load([batch, first_k, first_n]).reshape(DEPTH, TILE_N).T
        if A_ALONG_K:
            of_a = a.load([batch, first_m, first_k]).reshape(TILE_M, DEPTH).T
        else:
            of_a = a.load([batch, first_k, first_m]).reshape(DEPTH, TILE_M)
        sums = tl.dot(of_b, of_a, sums, input_precision=PRECISION)
    columns = first_n + tl.arange(0, TILE_N)[:, None]
    rows = first_m + tl.arange(0, TILE_M)[None, :]
    inside = (columns < n) & (rows < m)
    result = alpha * sums
    if beta != 0.0:  # beta = 0 must not read C
        at_c = c + batch.to(tl.int64) * stride_c + columns.to(tl.int64) * ldc + rows
        result += beta * tl.load(at_c, mask=inside, other=0.0)
    at_d = d + batch.to(tl.int64) * stride_d + columns.to(tl.int64) * ldd + rows
    tl.store(at_d, result, mask=inside)
