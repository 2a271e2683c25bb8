"""The user's own kernels, which a YAML file describes: a family for each language of a description."""

from .cuda import CustomCudaKernel
from .family import CustomKernel
from .triton import CustomTritonKernel

__all__ = ["CustomCudaKernel", "CustomKernel", "CustomTritonKernel"]
