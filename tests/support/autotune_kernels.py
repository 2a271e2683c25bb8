"""Triton kernels for the tests of `tunesmith.autotune`: plain, accumulating, strided, hanging, and with constants."""
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scaled_copy(y, x, count, factor, bias, BLOCK: tl.constexpr, MODE: tl.constexpr = "plain"):
    """`bias` may be None. A BLOCK of 64 hangs if MODE is `hang`, and leaves the factor out if MODE is `wrong`."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < count)
    if MODE == "hang" and BLOCK == 64:
        while tl.load(x, volatile=True) < 1.0e30:
            values += 1.0
    if not (MODE == "wrong" and BLOCK == 64):
        values = values * factor
    if bias is not None:
        values += tl.load(bias + at, mask=at < count)
    tl.store(y + at, values.to(y.dtype.element_ty), mask=at < count)


@triton.jit
def strided_rows(y, x, rows, columns, y_stride, x_stride, x_step, BLOCK: tl.constexpr):
    """Doubles a matrix of any strides."""
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    for first in range(0, columns, BLOCK):
        at = first + column
        values = tl.load(x + row * x_stride + at * x_step, mask=at < columns)
        tl.store(y + row * y_stride + at, values * 2, mask=at < columns)


@triton.jit
def accumulated(total, x, count, BLOCK: tl.constexpr):
    """Adds all elements of x to `total`."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + at, mask=at < count, other=0.0), axis=0))


@triton.jit
def product(c, a, b, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The product of two matrices in row-major order."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        depth = first + tl.arange(0, BLOCK_K)
        left = tl.load(a + row[:, None] * K + depth[None, :], mask=(row[:, None] < M) & (depth[None, :] < K), other=0.0)
        right = tl.load(
            b + depth[:, None] * N + column[None, :], mask=(depth[:, None] < K) & (column[None, :] < N), other=0.0
        )
        sums += tl.dot(left, right)
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c + row[:, None] * N + column[None, :], sums.to(c.dtype.element_ty), mask=inside)


@triton.jit
def masked_copy(y, x, count, BLOCK: tl.constexpr):
    """Ones where x is true. Inverting a mask is right only if x holds truth values."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < count)
    if x.dtype.element_ty == tl.int1:
        tl.store(y + at, 1.0, mask=values & (at < count))
    else:
        tl.store(y + at, values.to(tl.float32), mask=at < count)
