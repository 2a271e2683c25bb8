"""Convolution: types, the typed view of a problem, lists of problems, and the operation.

`reference.py` computes the written array in float64 with the tolerance of a result's check.
"""

from .fields import CONVOLUTION_FIELDS, Direction
from .listed import ListedConvolution, read_convolution_list
from .operation import ConvolutionOperation
from .type import Convolution, ConvolutionTypeError, ImplicitGemm, convolution_type

__all__ = [
    "CONVOLUTION_FIELDS",
    "Convolution",
    "ConvolutionOperation",
    "ConvolutionTypeError",
    "Direction",
    "ImplicitGemm",
    "ListedConvolution",
    "convolution_type",
    "read_convolution_list",
]
