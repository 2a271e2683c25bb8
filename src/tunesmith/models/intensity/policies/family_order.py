"""The order in which kernel families are tried for a product on a target, if nobody names a family."""

from __future__ import annotations

from tunesmith.kernels import KERNELS, Kernel
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem, Target

VECTOR_FIRST = ("TritonGemv", "VendorBlas")
"""Tried before all others for a product with a vector."""
ORDER = {
    ("CUDA", "GPU"): ("CudaWgmmaGemm", "TritonGemm", "VendorBlas", "CudaSimtGemm", "PortBlasCuda"),
    ("HIP", "GPU"): ("TritonGemm",),
    ("OpenCL", "GPU"): ("TiledGemm", "PortBlasGemm"),
    ("OpenCL", "CPU"): ("RegisterGemm", "PortBlasGemm", "TiledGemm"),
}
"""The families by the device's API and kind. Families with tensor cores come first, families for every type last."""

RIVALS = {("CUDA", "GPU"): ("CudaWgmmaGemm", "TritonGemm")}
"""Families whose expected times a model compares. They use the same units of the chip, so one model serves them all."""


def kernel_order(problem: Problem, target: Target) -> tuple[Kernel, ...]:
    """The families to try, the preferred one first; empty for a device without a family."""
    names = ORDER.get((target.api, target.kind), ())
    gemm = Gemm.of(problem)
    if 1 in (gemm.m, gemm.n) and target.api in ("CUDA", "HIP"):
        names = tuple(dict.fromkeys((*VECTOR_FIRST, *names)))
    return tuple(KERNELS[name] for name in names)
