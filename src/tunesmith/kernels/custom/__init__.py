"""The user's own kernels, which a YAML file describes: a family for each language of a description."""

from .cuda import CustomCudaKernel
from .family import CustomKernel

__all__ = ["CustomCudaKernel", "CustomKernel"]
