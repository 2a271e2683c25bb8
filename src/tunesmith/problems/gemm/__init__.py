"""D = activation(alpha op(A) op(B) + bias) + beta C: types, the typed view of a problem, and the operation."""

from tunesmith.problems._base import strided

from ._fields import ACTIVATIONS, DATA_TYPES
from ._names import gemm_type_named
from ._type import Gemm, dest_of, gemm_type, is_interleaved
from .operation import FIELDS, SCALES, GemmOperation

__all__ = [
    "ACTIVATIONS",
    "DATA_TYPES",
    "FIELDS",
    "SCALES",
    "Gemm",
    "GemmOperation",
    "dest_of",
    "gemm_type",
    "gemm_type_named",
    "is_interleaved",
    "strided",
]
