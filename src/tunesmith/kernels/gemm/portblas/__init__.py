"""GEMM kernels with the parameters of portBLAS's auto-tuner, in OpenCL C and CUDA C++."""

from .family import PortBlasCuda, PortBlasGemm
from .standalone import standalone_source

__all__ = ["PortBlasCuda", "PortBlasGemm", "standalone_source"]
