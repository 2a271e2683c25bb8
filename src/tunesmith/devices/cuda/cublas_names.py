"""Enumeration values of cuBLAS and cuBLASLt, and their statuses as errors.

Sources: NVIDIA's cuBLAS documentation; enumerations from cublas_api.h and library_types.h. CUBLAS_OP_N and CUBLAS_OP_T
are 0 and 1, to which ctypes converts False and True.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base import NOT_SUPPORTED, LaunchError

if TYPE_CHECKING:
    from ..gemm_call import GemmCall

DATA_TYPES = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "int8": 3,
    "int32": 10,
    "bfloat16": 14,
    "float8_e4m3fn": 28,
    "float8_e5m2": 29,
}
"""CUDA_R_32F, _64F, _16F, _8I, _32I, _16BF, _8F_E4M3, _8F_E5M2 of `cudaDataType`."""

SINGLE, DOUBLE, INTEGERS, TF32 = 68, 70, 72, 77
"""CUBLAS_COMPUTE_32F, _64F, _32I and _32F_FAST_TF32."""

SUMS: Mapping[str, tuple[int, Any]] = {
    **dict.fromkeys(("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"), (SINGLE, ctypes.c_float)),
    "float64": (DOUBLE, ctypes.c_double),
    "int8": (INTEGERS, ctypes.c_int),
}
"""By data type: how products are added, and the type of alpha and beta."""

HARMLESS = {
    1: "not initialized",
    3: "allocation failed",
    7: "invalid value",
    8: "architecture mismatch",
    15: NOT_SUPPORTED,
}
"""Statuses after which the context still works."""

FATAL = {11: "mapping error", 13: "execution failed", 14: "internal error", 16: "license error"}

Addresses = Mapping[str, int]


def sums_of(step: GemmCall) -> tuple[int, Any]:
    """How a call's products are added, and the type of its alpha and beta."""
    compute, scalar = SUMS[step.dtype]
    return (TF32 if step.tf32 else compute), scalar


def checked(library: Any, function: str, *arguments: Any) -> None:
    """Call a function of the library. Raises LaunchError for any status but success."""
    if status := int(getattr(library, function)(*arguments)):
        raise failure(function, status)


def failure(function: str, status: int) -> LaunchError:
    """The error for a status that is not 0."""
    reason = HARMLESS.get(status) or FATAL.get(status, "unknown")
    return LaunchError(reason, f"{function}: status {status}", poisoned=status not in HARMLESS)
