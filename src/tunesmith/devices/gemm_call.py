"""What a `LibraryCall` of the function `gemm` says, with names and types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tunesmith.records import LibraryCall


@dataclass(frozen=True, slots=True)
class GemmCall:
    """D = alpha op(A) op(B) + beta C.

    Column-major, the operands by their names A, B, C and D; with beta = 0, C is not read. `dtype` is NumPy's name for
    A and B, `dest` that for C and D; leading dimensions and strides from one matrix of the batch to the next are in
    elements. The rest is what only some BLAS have: products in TF32; a Bias of M numbers and an activation, which then
    come after beta C; a scale each for A and B (ScaleA, ScaleB). Of the plan's workspace it may use `workspace_bytes`.
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

    @staticmethod
    def of(step: LibraryCall) -> GemmCall:
        """Raises TypeError for parameters of another function."""
        parameters: dict[str, Any] = dict(step.parameters)
        return GemmCall(**parameters)
