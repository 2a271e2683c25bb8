"""The user's own kernels, described by a YAML file: a family for each language that the description may have."""

from ._family import CustomKernel
from .cuda import CustomCudaKernel

__all__ = ["CustomCudaKernel", "CustomKernel"]
