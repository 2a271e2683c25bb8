"""Kernels that fill a buffer with random numbers."""

from .family import CudaRandom, OpenCLRandom
from .launches import COUNT, changed, groups, start_argument

__all__ = ["COUNT", "CudaRandom", "OpenCLRandom", "changed", "groups", "start_argument"]
