"""The user's own kernels, described by a YAML file: a family for each language that the description may have."""

from .cuda import CustomCudaKernel
from .family import CustomKernel

__all__ = ["CustomCudaKernel", "CustomKernel"]
