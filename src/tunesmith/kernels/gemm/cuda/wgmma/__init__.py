"""GEMM on Hopper's tensor cores in CUDA C++: TMA and warp-group products."""

from .family import CudaWgmmaGemm

__all__ = ["CudaWgmmaGemm"]
