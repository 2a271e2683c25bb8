"""Batches that no problem type serves as they lie: one call of cuBLAS on an NVIDIA GPU, or one call of NumPy if the
device is the host's CPU. For small matrices, a launch for each matrix costs up to a thousand times as much."""

from __future__ import annotations

from itertools import product

from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library.launch._launcher import Launcher, ReadyLaunch
from tunesmith.records import Problem

from ._checked_call import CheckedCall
from ._layouts import LayoutMatch, closest, problem_of
from ._request import is_tf32

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
