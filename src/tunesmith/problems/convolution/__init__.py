"""Convolution: types, the typed view of a problem, lists of problems, and the operation."""

from ._fields import CONVOLUTION_FIELDS, Direction
from ._type import Convolution, ConvolutionTypeError, ImplicitGemm, convolution_type
from .listed import ListedConvolution, read_convolution_list
from .operation import ConvolutionOperation

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
