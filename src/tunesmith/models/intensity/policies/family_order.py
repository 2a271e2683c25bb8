"""Which kernel family comes first for a product on a target, where nobody names one."""

from __future__ import annotations

from tunesmith.kernels import KERNELS, Kernel
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem, Target

VECTOR_FIRST = ("TritonGemv", "VendorBlas")
"""For a product with a vector, before all others."""
ORDER = {
    ("CUDA", "GPU"): ("CudaWgmmaGemm", "TritonGemm", "VendorBlas", "CudaSimtGemm", "PortBlasCuda"),
    ("HIP", "GPU"): ("TritonGemm",),
    ("OpenCL", "GPU"): ("TiledGemm", "PortBlasGemm"),
    ("OpenCL", "CPU"): ("RegisterGemm", "PortBlasGemm", "TiledGemm"),
}
"""By the device's API and kind. Tensor cores first; what computes every type last."""


def kernel_order(problem: Problem, target: Target) -> tuple[Kernel, ...]:
    """The families to ask, the preferred one first; nothing for a device that no family here is made for."""
    names = ORDER.get((target.api, target.kind), ())
    gemm = Gemm.of(problem)
    if 1 in (gemm.m, gemm.n) and target.api in ("CUDA", "HIP"):
        names = tuple(dict.fromkeys((*VECTOR_FIRST, *names)))
    return tuple(KERNELS[name] for name in names)
