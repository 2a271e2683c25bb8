"""cuBLAS by its C interface: one handle for a context, calls on a stream.

Sources: NVIDIA's cuBLAS documentation, cublasGemmEx and cublasGemmStridedBatchedEx; enumerations from cublas_api.h and
library_types.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.records import GemmCall

from ._base import LaunchError
from ._cuda_driver import bindings, call

OPERATIONS = {False: 0, True: 1}
"""CUBLAS_OP_N, CUBLAS_OP_T, by whether an operand is transposed."""

DATA_TYPES = {"float32": 0, "float64": 1, "float16": 2}
"""CUDA_R_32F, CUDA_R_64F, CUDA_R_16F."""

COMPUTE_TYPES = {"float32": 68, "float64": 70, "float16": 68}
"""CUBLAS_COMPUTE_32F and _64F: sums of half-precision products are in single precision."""

SCALARS = {"float32": ctypes.c_float, "float64": ctypes.c_double, "float16": ctypes.c_float}
"""alpha and beta, in the type of the sums."""

DEFAULT_MATH = 0
"""CUBLAS_DEFAULT_MATH: no precision below that of the data, so no TF32 for float32."""

DEFAULT_ALGORITHM = -1
"""CUBLAS_GEMM_DEFAULT: cuBLAS chooses."""

HARMLESS = {
    1: "not initialized",
    3: "allocation failed",
    7: "invalid value",
    8: "architecture mismatch",
    15: "not supported",
}
"""Statuses after which the context goes on."""

FATAL = {11: "mapping error", 13: "execution failed", 14: "internal error", 16: "license error"}

Addresses = Mapping[str, int]


@dataclass(slots=True)
class Use:
    """A call's place among the kernels of a prepared plan. `launched`: it ran before, with all its code loaded."""

    launched: bool = False


class CuBlas:
    """A handle in the thread's current context, made at the first call; `library` is what ctypes loaded."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handle: ctypes.c_void_p | None = None
        self._stream: int | None = None
        self._uses: dict[GemmCall, Use] = {}

    @staticmethod
    def load(place: str) -> CuBlas:
        """Raises LaunchError where the library does not load. What it needs lies beside it in NVIDIA's wheels."""
        beside = Path(place).with_name(Path(place).name.replace("libcublas.", "libcublasLt."))
        try:
            if beside.is_file():
                ctypes.CDLL(str(beside), ctypes.RTLD_GLOBAL)
            return CuBlas(ctypes.CDLL(place))
        except OSError as error:
            raise LaunchError("no library", str(error)) from error

    def gemm(self, step: GemmCall, addresses: Addresses, stream: Any) -> Callable[[], None]:
        """What enqueues one call on a stream. cuBLAS adds to what its output holds, so with beta C is copied first."""
        function, arguments = gemm_arguments(step, addresses)
        copying = step.beta != 0 and addresses["C"] != addresses["D"]
        copy = partial(_copy, step, addresses, stream) if copying else None

        def enqueue() -> None:
            self._on(int(stream))
            if copy:
                copy()
            self._checked(function, self._handle, *arguments)

        return enqueue

    def use(self, step: GemmCall) -> Use:
        """The same for equal calls, for which cuBLAS chooses the same kernels."""
        return self._uses.setdefault(step, Use())

    def _on(self, stream: int) -> None:
        if self._handle is None:
            handle = ctypes.c_void_p()
            self._checked("cublasCreate_v2", ctypes.byref(handle))
            self._checked("cublasSetMathMode", handle, ctypes.c_int(DEFAULT_MATH))
            self._handle = handle
        if stream != self._stream:
            self._checked("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
            self._stream = stream

    def _checked(self, function: str, *arguments: Any) -> None:
        if status := int(getattr(self._library, function)(*arguments)):
            reason = HARMLESS.get(status) or FATAL.get(status, "unknown")
            raise LaunchError(reason, f"{function}: status {status}", poisoned=status not in HARMLESS)


def gemm_arguments(step: GemmCall, addresses: Addresses) -> tuple[str, list[Any]]:
    """The function's name and its arguments after the handle. Raises LaunchError for an unknown data type.

    A single matrix goes by cublasGemmEx, for which cuBLAS has more to choose from.
    """
    if step.dtype not in DATA_TYPES:
        raise LaunchError("data type", f"cuBLAS is not asked for {step.dtype}")
    kind, scalar = ctypes.c_int(DATA_TYPES[step.dtype]), SCALARS[step.dtype]
    single = step.batch == 1

    def matrix(name: str, leading: int, stride: int) -> list[Any]:
        strides = [] if single else [ctypes.c_longlong(stride)]
        return [ctypes.c_void_p(addresses[name]), kind, ctypes.c_int(leading), *strides]

    arguments = [
        *(ctypes.c_int(OPERATIONS[transposed]) for transposed in (step.transpose_a, step.transpose_b)),
        *(ctypes.c_int(extent) for extent in (step.m, step.n, step.k)),
        ctypes.byref(scalar(step.alpha)),
        *matrix("A", step.lda, step.stride_a),
        *matrix("B", step.ldb, step.stride_b),
        ctypes.byref(scalar(step.beta)),
        *matrix("D", step.ldd, step.stride_d),
        *([] if single else [ctypes.c_int(step.batch)]),
        ctypes.c_int(COMPUTE_TYPES[step.dtype]),
        ctypes.c_int(DEFAULT_ALGORITHM),
    ]
    return "cublasGemmEx" if single else "cublasGemmStridedBatchedEx", arguments


def _copy(step: GemmCall, addresses: Addresses, stream: Any) -> None:
    """C's columns into D's, and nothing between them. The matrices of a batch follow one another at N columns each."""
    driver, size = bindings(), np.dtype(step.dtype).itemsize
    made = driver.CUDA_MEMCPY2D()
    made.srcMemoryType = made.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    made.srcDevice, made.srcPitch = addresses["C"], step.ldc * size
    made.dstDevice, made.dstPitch = addresses["D"], step.ldd * size
    made.WidthInBytes, made.Height = step.m * size, step.n * step.batch
    call("cuMemcpy2DAsync", made, stream)
