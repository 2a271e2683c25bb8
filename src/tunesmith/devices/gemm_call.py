"""A `LibraryCall` of the function `gemm`, with named and typed parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tunesmith.records import LibraryCall


@dataclass(frozen=True, slots=True)
class GemmCall:
    """D = alpha op(A) op(B) + beta C.

    Matrices are column-major; the operands are named A, B, C and D. With beta = 0, C is not read. `dtype` is NumPy's
    name of the type of A and B, `dest` of C and D. Leading dimensions, and strides from one matrix of the batch to the
    next, are in elements. Only some BLAS support the rest: products in TF32; a Bias of M numbers and an activation,
    which follow beta C; a scale for A and one for B (ScaleA, ScaleB). The call may use `workspace_bytes` of the plan's
    workspace. With `loose_sums`, parts of a sum of float16 or bfloat16 may be rounded to that type before they are
    added; a plan asks for that where it is timed only (`VendorBlas.timed`).
    """

    dtype: str
    transpose_a: bool
    transpose_b: bool
    m: int
    n: int
    k: int
    batch: int
    lda: int
    ldb: int
    ldc: int
    ldd: int
    stride_a: int
    stride_b: int
    stride_c: int
    stride_d: int
    alpha: float
    beta: float
    dest: str
    tf32: bool
    bias: bool
    activation: str
    scaled: bool
    workspace_bytes: int
    loose_sums: bool = False

    @property
    def needs_cublas_lt(self) -> bool:
        """Whether of NVIDIA's libraries only cuBLASLt supports the call."""
        return self.dtype.startswith("float8") or self.bias or self.activation != "none"

    @staticmethod
    def of(step: LibraryCall) -> GemmCall:
        """Raises TypeError for parameters of another function."""
        parameters: dict[str, Any] = dict(step.parameters)
        return GemmCall(**parameters)
