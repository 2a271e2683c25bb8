"""D = activation(alpha op(A) op(B) + bias) + beta C: types, the typed view of a problem, and the operation.

`reference.py` computes D in float64 and derives the tolerance of a result's check.
"""

from tunesmith.problems.base import strided

from .fields import ACTIVATIONS, DATA_TYPES
from .names import gemm_type_named
from .operation import FIELDS, SCALES, GemmOperation
from .type import TF32, Gemm, dest_of, equally_fast, gemm_type, is_interleaved, of_batches, torch_type

__all__ = [
    "ACTIVATIONS",
    "DATA_TYPES",
    "FIELDS",
    "SCALES",
    "TF32",
    "Gemm",
    "GemmOperation",
    "dest_of",
    "equally_fast",
    "gemm_type",
    "gemm_type_named",
    "is_interleaved",
    "of_batches",
    "strided",
    "torch_type",
]
