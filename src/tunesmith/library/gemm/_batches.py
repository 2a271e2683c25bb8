"""Batches that no problem type serves: one call of cuBLAS on an NVIDIA GPU, or one call of NumPy if the device is the
host's CPU. For small matrices, a launch for each matrix costs up to a thousand times as much."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library.arrays._libraries import Array
from tunesmith.library.launch._launcher import Launcher, ReadyLaunch
from tunesmith.records import Problem

from ._checked_call import Arguments, CheckedCall, Scalars
from ._epilogue import finished
from ._layouts import LayoutMatch, closest, problem_of
from ._request import GemmRequest, is_tf32

REALS = ("float32", "float64")
"""Precisions of sums in which NumPy multiplies by its BLAS. It multiplies integers by plain loops."""


def numpy_serves(launcher: Launcher, call: CheckedCall) -> bool:
    """Whether NumPy multiplies such a batch by its BLAS, on the processor that is the library's device."""
    return call.out.on_host and launcher.device.target.kind == "CPU" and call.request.sums in REALS


def vendors_match(launcher: Launcher, call: CheckedCall, match: LayoutMatch) -> LayoutMatch | None:
    """The match with the fewest bytes to copy by which the vendor's BLAS computes each matrix of a batch. It computes
    the same part of the request as `match`, in TF32 if the type of `match` does. None if the device's BLAS does not
    compute it."""
    family, target, computed = KERNELS[VENDOR], launcher.device.target, match.computed
    tf32 = is_tf32(match.type)
    kinds = [computed.type_of(a, b, tf32=tf32, batched=False) for a, b in product((False, True), repeat=2)]
    legal = [kind for kind in kinds if not any(family.rejections(family.space(kind, target).defaults, kind, target))]
    return closest(call.only(computed), legal)


def vendors_batch(launcher: Launcher, call: CheckedCall, match: LayoutMatch, aligned: bool) -> ReadyLaunch | None:
    """One call for a whole batch whose matrices are problems of the match's type as they lie. The distance from one
    matrix to the next is arbitrary, and 0 for a matrix that serves the whole batch. None if the vendor's BLAS does not
    take the call."""
    if call.request.data == "i8":  # cublasGemmStridedBatchedEx refuses some layouts of it (status 15 on an H200)
        return None
    matrices = {"A": call.a, "B": call.b, "C": call.c or call.out, "D": call.out}
    if match.swapped:
        matrices["A"], matrices["B"] = matrices["B"], matrices["A"]
    if any(x.strides[0] < 0 or x.strides[0] % x.itemsize for x in matrices.values()):
        return None
    flags = match.type.fields
    transposes = flags.flag("TransposeA"), flags.flag("TransposeB")
    kind = match.computed.type_of(*transposes, tf32=is_tf32(match.type), batched=True)
    single = problem_of(call.first(), match)
    m, n, k = single.sizes
    problem = Problem(kind, (m, n, call.out.shape[0], k), single.leading, single.scalars)
    strides = {f"stride_{name.lower()}": x.strides[0] // x.itemsize for name, x in matrices.items()}
    return launcher.by_vendor(problem, strides, aligned)


# --- NumPy ------------------------------------------------------------------------------------------------------------


def by_numpy(arguments: Arguments, scalars: Scalars, request: GemmRequest, blank: Callable[[], Any]) -> Any:
    """The whole call by NumPy, in the precision of the sums, into `out`, or into memory from `blank` if there is no
    `out`."""
    wide = np.dtype(request.sums)
    a, b = (_as_blas_takes(x, wide) for x in (arguments.a, arguments.b))
    out = blank() if arguments.out is None else arguments.out
    with np.errstate(all="ignore"):  # as kernels do
        if scalars.alpha == 1 and not request.epilogue and out.dtype == wide and _is_blas_matrix(out):
            np.matmul(a, b, out=out)
            return out
        sums = np.matmul(a, b)
        if scalars.alpha != 1:
            sums *= wide.type(scalars.alpha)
        out[...] = finished(None, sums, request, scalars.beta, arguments) if request.epilogue else sums
    return out


def _as_blas_takes(x: Array, dtype: np.dtype[Any]) -> Array:
    """The same numbers in this data type, each matrix laid out so that NumPy gives it to BLAS. A single matrix that
    serves the whole batch stays a single matrix."""
    if x.ndim > 2 and x.strides[0] == 0:
        x = x[:1]
    if x.dtype != dtype:
        return x.astype(dtype, order="C")
    return x if _is_blas_matrix(x) else np.ascontiguousarray(x)


def _is_blas_matrix(x: Array) -> bool:
    """Whether rows or columns are contiguous and do not overlap. NumPy multiplies other matrices ten times slower."""
    (rows, columns), (down, along), size = x.shape[-2:], x.strides[-2:], x.itemsize
    in_rows = along == size and down >= columns * size and down % size == 0
    return in_rows or (down == size and along >= rows * size and along % size == 0)
