"""cuBLAS by its C interface: one handle for a context, and calls on a stream.

Source: NVIDIA's cuBLAS documentation, cublasGemmEx and cublasGemmStridedBatchedEx.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.records import LibraryCall, LibraryPlan

from ..base import LaunchError
from ..gemm_call import GemmCall
from .cublas_lt import CuBlasLt
from .cublas_names import DATA_TYPES, Addresses, checked, failure, sums_of
from .driver import bindings, call
from .native import STREAM, NativeStep, address_of, word

LOOSE_MATH = 0
"""CUBLAS_DEFAULT_MATH, so no TF32 for float32. cuBLAS may add parts of a sum in float16 or bfloat16.
Source: NVIDIA's documentation of cublasMath_t."""

STRICT_MATH = LOOSE_MATH | 16
"""With CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION. Without this bit a result may be outside the bound that every
kernel must meet."""

HALVES = ("float16", "bfloat16")
"""The data types that have loose sums."""

DEFAULT_ALGORITHM = -1
"""CUBLAS_GEMM_DEFAULT: cuBLAS chooses."""


@dataclass(slots=True)
class CuBlasHandle:
    """A handle of cuBLAS for one math mode, and the stream that it was last set to."""

    value: ctypes.c_void_p
    stream: int | None = None


@dataclass(slots=True)
class BlasCallState:
    """The state of a library call. `launched`: the call ran before, so all its code is loaded."""

    launched: bool = False


class CuBlas:
    """cuBLAS in the thread's current context. A handle for each math mode is made at the first call that needs it.
    ctypes loaded `library`, cuBLAS, and `extension`, its cuBLASLt."""

    def __init__(self, library: Any, extension: Any = None) -> None:
        self._library, self._extension = library, CuBlasLt(extension)
        self._handles: dict[int, CuBlasHandle] = {}
        self._native_handles: dict[int, CuBlasHandle] = {}
        self._call_states: dict[LibraryCall, BlasCallState] = {}
        self._functions = {"gemm": self._gemm}

    @staticmethod
    def load(location: str) -> CuBlas:
        """Load the library. Raises LaunchError if that fails. In NVIDIA's wheels, cuBLASLt lies beside it."""
        sibling = Path(location).with_name(Path(location).name.replace("libcublas.", "libcublasLt."))
        try:
            extension = ctypes.CDLL(str(sibling if sibling.is_file() else sibling.name), ctypes.RTLD_GLOBAL)
            return CuBlas(ctypes.CDLL(location), extension)
        except OSError as error:
            raise LaunchError("no library", str(error)) from error

    def repeated(self, step: LibraryCall, addresses: Addresses) -> Callable[[int, Addresses], None]:
        """A function that enqueues a call on the stream and the addresses that it receives.

        The call's other arguments are made here, once. `addresses` are the first ones.
        """
        return self._functions[step.function](step, addresses)

    def _gemm(self, called: LibraryCall, addresses: Addresses) -> Callable[[int, Addresses], None]:
        """As `repeated`. With beta, C is copied into D first, since cuBLAS adds to its output."""
        step = GemmCall.of(called)
        if step.needs_cublas_lt:
            return self._extension.matmul(step, addresses)
        a, b, d = pointers = [ctypes.c_void_p(addresses[name]) for name in "ABD"]
        name, arguments = gemm_arguments(step, dict(zip("ABD", pointers, strict=True)))
        function, mode = getattr(self._library, name), math_mode(step)
        handle: CuBlasHandle | None = None

        def enqueue(stream: int, addresses: Addresses) -> None:
            nonlocal handle
            handle = handle or self._handle_of(self._handles, mode)
            if stream != handle.stream:
                checked(self._library, "cublasSetStream_v2", handle.value, ctypes.c_void_p(stream))
                handle.stream = stream
            if step.beta and addresses["C"] != addresses["D"]:
                _copy(step, addresses, stream)
            a.value, b.value, d.value = addresses["A"], addresses["B"], addresses["D"]
            if status := function(handle.value, *arguments):
                raise failure(name, status)

        return enqueue

    def native(self, called: LibraryCall, slots: Mapping[str, int]) -> tuple[NativeStep, ...] | None:
        """A call for `tunesmith_native`, on a handle of its own: two threads may not use one handle on two streams.
        `slots` are those of operands by name. None for a call of cuBLASLt, and for one with beta."""
        step = GemmCall.of(called)
        if called.function != "gemm" or step.needs_cublas_lt or step.beta:
            return None
        handle = self._handle_of(self._native_handles, math_mode(step)).value
        pointers = {name: ctypes.c_void_p() for name in "ABD"}
        name, arguments = gemm_arguments(step, pointers)
        words = tuple(word(argument) for argument in (handle, *arguments))
        places = {id(pointer): slots[operand] for operand, pointer in pointers.items()}
        writes = tuple((index, places[id(x)], 0) for index, x in enumerate(arguments, 1) if id(x) in places)
        on_stream = NativeStep(
            "cublasSetStream_v2", address_of(self._library.cublasSetStream_v2), words[:1], ((1, STREAM, 0),)
        )
        return on_stream, NativeStep(name, address_of(getattr(self._library, name)), words, writes, kept=arguments)

    def foreseen(self, called: LibraryCall) -> LibraryPlan:
        """How cuBLASLt would make a call of cuBLAS with the call's workspace. Raises LaunchError if there is no way."""
        return self._extension.foreseen(GemmCall.of(called))

    def call_state(self, step: LibraryCall) -> BlasCallState:
        """The state of a call. Equal calls share it, since cuBLAS chooses the same kernels for them."""
        return self._call_states.setdefault(step, BlasCallState())

    def _handle_of(self, handles: dict[int, CuBlasHandle], mode: int) -> CuBlasHandle:
        if mode not in handles:
            handle = ctypes.c_void_p()
            checked(self._library, "cublasCreate_v2", ctypes.byref(handle))
            checked(self._library, "cublasSetMathMode", handle, ctypes.c_int(mode))
            handles[mode] = CuBlasHandle(handle)
        return handles[mode]


def math_mode(step: GemmCall) -> int:
    """The math mode that a call needs. Types without loose sums need no handle of their own."""
    return LOOSE_MATH if step.loose_sums and step.dtype in HALVES else STRICT_MATH


def gemm_arguments(step: GemmCall, pointers: Mapping[str, ctypes.c_void_p]) -> tuple[str, list[Any]]:
    """The function's name, and its arguments after the handle, which contain `pointers`. Raises LaunchError for an
    unknown data type.

    A single matrix is computed by cublasGemmEx, for which cuBLAS has more kernels.
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
    """Copy C's columns into D's, and nothing between them: in one copy if each matrix of the batch follows the previous
    one directly, else one matrix after the other."""
    driver, size = bindings(), np.dtype(step.dest).itemsize
    contiguous = step.stride_c == step.ldc * step.n and step.stride_d == step.ldd * step.n
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.srcPitch, copy.dstPitch, copy.WidthInBytes = step.ldc * size, step.ldd * size, step.m * size
    copy.Height = step.n * (step.batch if contiguous else 1)
    for index in range(1 if contiguous else step.batch):
        copy.srcDevice = addresses["C"] + index * step.stride_c * size
        copy.dstDevice = addresses["D"] + index * step.stride_d * size
        call("cuMemcpy2DAsync", copy, stream)
