"""Kernels that fill a buffer with random numbers."""

from .family import CudaRandom, OpenCLRandom, moved

__all__ = ["CudaRandom", "OpenCLRandom", "moved"]
