"""Softmax of every row of a matrix, in Triton; softmax_triton_kernel.yaml describes the constants and arguments."""
# ruff: noqa: N803

import triton
import triton.language as tl


@triton.jit
def after_block(largest, total, values):
    """The largest value and the sum of exponentials so far, when a block of values follows."""
    larger = tl.maximum(largest, tl.max(values, axis=0))
    return larger, total * tl.exp(largest - larger) + tl.sum(tl.exp(values - larger), axis=0)


@triton.jit
def softmax(x, y, columns, rows, BLOCK: tl.constexpr, ROWS: tl.constexpr, num_stages: tl.constexpr):
    """Each program takes ROWS rows, and BLOCK elements of a row at a time."""
    for row in range(tl.program_id(0) * ROWS, min(rows, (tl.program_id(0) + 1) * ROWS)):
        first = row * columns.to(tl.int64)
        largest, total = -float("inf"), 0.0
        for start in tl.range(0, columns, BLOCK, num_stages=num_stages):
            column = start + tl.arange(0, BLOCK)
            values = tl.load(x + first + column, mask=column < columns, other=-float("inf"))
            largest, total = after_block(largest, total, values)
        for start in tl.range(0, columns, BLOCK, num_stages=num_stages):
            column = start + tl.arange(0, BLOCK)
            values = tl.load(x + first + column, mask=column < columns)
            tl.store(y + first + column, tl.exp(values - largest) / total, mask=column < columns)
