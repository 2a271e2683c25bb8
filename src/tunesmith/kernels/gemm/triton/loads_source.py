"""Jit functions that bring in operands, for `gemm_source` and `gemv_source`. Without Triton this is only read as text.

Triton's custom is capital letters for what is known when it compiles.
"""
# ruff: noqa: N803, RET505

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def wait_for_launch_before(EARLY: tl.constexpr):  # type: ignore[no-untyped-def]
    """Wait until the launch before this one has ended: this one may have started earlier."""
    if EARLY:
        tl.extra.cuda.gdc_wait()


@triton.jit  # type: ignore[untyped-decorator]
def multiple(number, OF: tl.constexpr):  # type: ignore[no-untyped-def]
    """The number, of which the host promises that it is a multiple of OF: so written, the compiler knows it too."""
    return number // OF * OF


@triton.jit  # type: ignore[untyped-decorator]
def fetched(  # type: ignore[no-untyped-def]
    operand,
    leading,
    stride,
    batch,
    first,
    extent,
    step,
    k,
    SIDE: tl.constexpr,
    DEPTH: tl.constexpr,
    ALONG_K: tl.constexpr,
    BY_TMA: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """SIDE x DEPTH elements of an operand from (`first`, `step`) on; zeros beyond its `extent` and beyond `k`.

    ALONG_K: its contiguous dimension is K. BY_TMA: it is a descriptor of batch x outer x contiguous; else an address,
    with a leading dimension, a stride between matrices and a contiguous extent that are multiples of WIDTH.
    """
    if BY_TMA:
        if ALONG_K:
            return operand.load([batch, first, step]).reshape(SIDE, DEPTH)
        else:
            return operand.load([batch, step, first]).reshape(DEPTH, SIDE).T
    else:
        rows = first + tl.arange(0, SIDE)[:, None]
        steps = step + tl.arange(0, DEPTH)[None, :]
        matrix = operand + batch.to(tl.int64) * multiple(stride, WIDTH)
        if ALONG_K:
            at = matrix + rows.to(tl.int64) * multiple(leading, WIDTH) + steps
            inside = (rows < extent) & (steps < multiple(k, WIDTH))
        else:
            at = matrix + steps.to(tl.int64) * multiple(leading, WIDTH) + rows
            inside = (rows < multiple(extent, WIDTH)) & (steps < k)
        return tl.load(at, mask=inside, other=0.0)
