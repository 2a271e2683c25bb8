"""Products by NumPy, which gives them to its BLAS."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np

from tunesmith.library.arrays._libraries import Array

from ._checked_call import Arguments, Scalars
from ._epilogue import finished
from ._request import GemmRequest


def by_numpy(
    arguments: Arguments, scalars: Scalars, request: GemmRequest, blank: Callable[[], Any], shared: str = ""
) -> Any:
    """The whole call by NumPy, in the precision of the sums, into `out`, or into memory from `blank` if there is no
    `out`. The `shared` argument ("a" or "b") serves the whole batch, whose other matrices follow one another: the
    product is one wide or one tall product."""
    wide = np.dtype(request.sums)
    a, b = (_as_blas_takes(x, wide) for x in (arguments.a, arguments.b))
    with np.errstate(all="ignore"):  # as kernels do
        if is_plain(scalars, request) and arguments.out is None and not shared:
            return np.matmul(a, b)
        out = blank() if arguments.out is None else arguments.out
        if is_plain(scalars, request) and out.dtype == wide and is_blas_matrix(out):
            _multiply(a, b, out, shared)
            return out
        sums = np.empty(out.shape, wide)
        _multiply(a, b, sums, shared)
        if scalars.alpha != 1:
            sums *= wide.type(scalars.alpha)
        out[...] = finished(None, sums, request, scalars.beta, arguments) if request.epilogue else sums
    return out


def is_plain(scalars: Scalars, request: GemmRequest) -> bool:
    """Whether the call asks for nothing but the product, in the type of its sums."""
    return scalars.alpha == 1 and not request.epilogue and request.result == request.sums


def is_blas_matrix(x: Array) -> bool:
    """Whether rows or columns are contiguous and do not overlap. NumPy multiplies other matrices ten times slower."""
    (rows, columns), (down, along), size = x.shape[-2:], x.strides[-2:], x.itemsize
    in_rows = along == size and down >= columns * size and down % size == 0
    return in_rows or (down == size and along >= rows * size and along % size == 0)


class Quiet(threading.local):
    """`run(function, *arguments)` calls a function while NumPy reports no overflow and no invalid number, as kernels
    report none. It takes a tenth of the time of `numpy.errstate`. A call within such a call is a RuntimeError."""

    def __init__(self) -> None:
        context = copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


def _multiply(a: Array, b: Array, out: Array, shared: str) -> None:
    """Write the product. With `shared`, the batch becomes one matrix if the arrays can be seen as one."""
    if shared == "b":
        tall, into = _one_below_the_other(a), _one_below_the_other(out)
        if tall is not None and into is not None:
            a, b, out = tall, b.reshape(b.shape[-2:]), into
    elif shared == "a":
        wide, into = _one_below_the_other(b.swapaxes(-1, -2)), _one_below_the_other(out.swapaxes(-1, -2))
        if wide is not None and into is not None:
            a, b, out = a.reshape(a.shape[-2:]), wide.T, into.T
    np.matmul(a, b, out=out)


def _one_below_the_other(x: Array) -> Array | None:
    """The batch as one tall matrix in the same memory; None if its matrices do not lie one below the other."""
    batch, rows, columns = x.shape
    if batch > 1 and rows > 1 and x.strides[0] != x.strides[1] * rows:
        return None
    tall = x.reshape(batch * rows, columns)
    return tall if np.may_share_memory(tall, x) else None


def _as_blas_takes(x: Array, dtype: np.dtype[Any]) -> Array:
    """The same numbers in this data type, each matrix laid out so that NumPy gives it to BLAS. A single matrix that
    serves the whole batch stays a single matrix."""
    if x.ndim > 2 and x.strides[0] == 0:
        x = x[:1]
    if x.dtype != dtype:
        return x.astype(dtype, order="C")
    return x if is_blas_matrix(x) else np.ascontiguousarray(x)
