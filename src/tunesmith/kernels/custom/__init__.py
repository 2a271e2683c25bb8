"""The user's own kernels, described by a YAML file."""

from ._family import CustomKernel

__all__ = ["CustomKernel"]
