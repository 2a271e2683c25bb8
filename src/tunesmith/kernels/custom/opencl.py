"""The described kernel in OpenCL C."""

from __future__ import annotations

from ._family import DescribedKernel


class CustomKernel(DescribedKernel):
    """Every argument of the description is one of the kernel's, in its order."""

    name, language = "Custom", "OpenCL"
