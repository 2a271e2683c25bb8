"""cuBLAS by its C interface: one handle for a context, calls on a stream.

Source: NVIDIA's cuBLAS documentation, cublasGemmEx and cublasGemmStridedBatchedEx.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.records import LibraryCall

from ..base import LaunchError
from ..gemm_call import GemmCall
from .cublas_lt import CuBlasLt
from .cublas_names import DATA_TYPES, Addresses, checked, failure, sums_of
from .driver import bindings, call

STRICT_MATH = 0 | 16
"""CUBLAS_DEFAULT_MATH, so no TF32 for float32, and CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: without it cuBLAS
adds parts of a sum in float16 or bfloat16, and the result is not within the bound asked of every kernel. Source:
NVIDIA's documentation of cublasMath_t."""

DEFAULT_ALGORITHM = -1
"""CUBLAS_GEMM_DEFAULT: cuBLAS chooses."""


@dataclass(slots=True)
class Use:
    """A call's place among the kernels of a prepared plan. `launched`: it ran before, with all its code loaded."""

    launched: bool = False


class CuBlas:
    """A handle in the thread's current context, made at the first call; `library` is what ctypes loaded, `extension`
    its cuBLASLt."""

    def __init__(self, library: Any, extension: Any = None) -> None:
        self._library, self._extension = library, CuBlasLt(extension)
        self._handle: ctypes.c_void_p | None = None
        self._stream: int | None = None
        self._uses: dict[LibraryCall, Use] = {}
        self._functions = {"gemm": self._gemm}

    @staticmethod
    def load(location: str) -> CuBlas:
        """Raises LaunchError where the library does not load. What it needs lies beside it in NVIDIA's wheels."""
        beside = Path(location).with_name(Path(location).name.replace("libcublas.", "libcublasLt."))
        try:
            extension = ctypes.CDLL(str(beside if beside.is_file() else beside.name), ctypes.RTLD_GLOBAL)
            return CuBlas(ctypes.CDLL(location), extension)
        except OSError as error:
            raise LaunchError("no library", str(error)) from error

    def repeated(self, step: LibraryCall, addresses: Addresses) -> Callable[[int, Addresses], None]:
        """What enqueues a call on a stream and on memory that are given then; `addresses` are the first ones. Its
        arguments are made now, and of those only addresses change."""
        return self._functions[step.function](step, addresses)

    def _gemm(self, called: LibraryCall, addresses: Addresses) -> Callable[[int, Addresses], None]:
        """cuBLAS adds to what its output holds, so with beta C is copied first."""
        step = GemmCall.of(called)
        if is_extended(step):
            return self._extension.matmul(step, addresses)
        a, b, d = pointers = [ctypes.c_void_p(addresses[name]) for name in "ABD"]
        name, arguments = gemm_arguments(step, dict(zip("ABD", pointers, strict=True)))
        function = getattr(self._library, name)

        def enqueue(stream: int, addresses: Addresses) -> None:
            if stream != self._stream:
                self._move(stream)
            if step.beta and addresses["C"] != addresses["D"]:
                _copy(step, addresses, stream)
            a.value, b.value, d.value = addresses["A"], addresses["B"], addresses["D"]
            if status := function(self._handle, *arguments):
                raise failure(name, status)

        return enqueue

    def use(self, step: LibraryCall) -> Use:
        """The same for equal calls, for which cuBLAS chooses the same kernels."""
        return self._uses.setdefault(step, Use())

    def _move(self, stream: int) -> None:
        """To another stream."""
        if self._handle is None:
            handle = ctypes.c_void_p()
            checked(self._library, "cublasCreate_v2", ctypes.byref(handle))
            checked(self._library, "cublasSetMathMode", handle, ctypes.c_int(STRICT_MATH))
            self._handle = handle
        checked(self._library, "cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        self._stream = stream


def is_extended(step: GemmCall) -> bool:
    """Whether only cuBLASLt has it."""
    return step.dtype.startswith("float8") or step.bias or step.activation != "none"


def gemm_arguments(step: GemmCall, pointers: Mapping[str, ctypes.c_void_p]) -> tuple[str, list[Any]]:
    """The function's name and its arguments after the handle, `pointers` among them. Raises LaunchError for an unknown
    data type.

    A single matrix goes by cublasGemmEx, for which cuBLAS has more to choose from.
    """
    if step.dtype not in DATA_TYPES:
        raise LaunchError("data type", f"cuBLAS is not asked for {step.dtype}")
    kinds = {"A": DATA_TYPES[step.dtype], "B": DATA_TYPES[step.dtype], "D": DATA_TYPES[step.dest]}
    compute, scalar = sums_of(step)
    single = step.batch == 1

    def matrix(name: str, leading: int, stride: int) -> list[Any]:
        strides = [] if single else [ctypes.c_longlong(stride)]
        return [pointers[name], ctypes.c_int(kinds[name]), ctypes.c_int(leading), *strides]

    def number(value: float) -> Any:
        return ctypes.byref(scalar(int(value) if scalar is ctypes.c_int else value))

    arguments = [
        *(ctypes.c_int(transposed) for transposed in (step.transpose_a, step.transpose_b)),
        *(ctypes.c_int(extent) for extent in (step.m, step.n, step.k)),
        number(step.alpha),
        *matrix("A", step.lda, step.stride_a),
        *matrix("B", step.ldb, step.stride_b),
        number(step.beta),
        *matrix("D", step.ldd, step.stride_d),
        *([] if single else [ctypes.c_int(step.batch)]),
        ctypes.c_int(compute),
        ctypes.c_int(DEFAULT_ALGORITHM),
    ]
    return "cublasGemmEx" if single else "cublasGemmStridedBatchedEx", arguments


def _copy(step: GemmCall, addresses: Addresses, stream: Any) -> None:
    """C's columns into D's, and nothing between them: all at once where the matrices of a batch follow one another at N
    columns each, else one matrix after the other."""
    driver, size = bindings(), np.dtype(step.dest).itemsize
    regular = step.stride_c == step.ldc * step.n and step.stride_d == step.ldd * step.n
    made = driver.CUDA_MEMCPY2D()
    made.srcMemoryType = made.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    made.srcPitch, made.dstPitch, made.WidthInBytes = step.ldc * size, step.ldd * size, step.m * size
    made.Height = step.n * (step.batch if regular else 1)
    for index in range(1 if regular else step.batch):
        made.srcDevice = addresses["C"] + index * step.stride_c * size
        made.dstDevice = addresses["D"] + index * step.stride_d * size
        call("cuMemcpy2DAsync", made, stream)
