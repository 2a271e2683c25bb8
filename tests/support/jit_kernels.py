"""Triton functions as a program or a notebook has them, for tests: a softmax, and attention with helpers."""
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LOWEST = -1.0e30


@triton.jit
def softmax(y, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    exponentials = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + column, exponentials / tl.sum(exponentials, axis=0), mask=column < columns)


@triton.jit
def scaled_product(queries, keys, scale):
    return tl.dot(queries, tl.trans(keys)) * (scale * LOG2E)


@triton.jit
def attention(out, q, k, v, length, scale, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Softmax of q k^T times v for each head (program 1), BLOCK_M queries a program, by running maxima."""
    first = tl.program_id(1).to(tl.int64) * length * HEAD
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    width = tl.arange(0, HEAD)
    queries = tl.load(q + first + rows[:, None] * HEAD + width[None, :], mask=rows[:, None] < length, other=0.0)
    largest = tl.full((BLOCK_M,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, HEAD), tl.float32)
    for start in range(0, length, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        at = first + columns[:, None] * HEAD + width[None, :]
        keys = tl.load(k + at, mask=columns[:, None] < length, other=0.0)
        products = tl.where(columns[None, :] < length, scaled_product(queries, keys, scale), LOWEST)
        larger = tl.maximum(largest, tl.max(products, axis=1))
        weights = tl.exp2(products - larger[:, None])
        shrink = tl.exp2(largest - larger)
        values = tl.load(v + at, mask=columns[:, None] < length, other=0.0)
        sums = sums * shrink[:, None] + tl.dot(weights.to(values.dtype), values)
        total = total * shrink + tl.sum(weights, axis=1)
        largest = larger
    result = sums / total[:, None]
    tl.store(out + first + rows[:, None] * HEAD + width[None, :], result, mask=rows[:, None] < length)
