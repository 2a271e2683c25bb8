"""Convolution: types, the typed view of a problem, lists of problems, and the operation."""

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
