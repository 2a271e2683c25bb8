"""The host's BLAS on host memory: SciPy's, through the functions that SciPy exports to C.

SciPy's Python functions take no leading dimensions and may copy; `scipy.linalg.cython_blas` hands out pointers to the
BLAS functions themselves, for this purpose (SciPy's documentation, "BLAS functions for Cython").
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tunesmith.records import LibraryCall

from .base import LaunchError
from .gemm_call import GemmCall

FUNCTIONS = {"float32": "sgemm", "float64": "dgemm"}
"""BLAS functions by data type. BLAS has no other types."""

REALS = {"float32": ctypes.c_float, "float64": ctypes.c_double}

Addresses = Mapping[str, int]
"""Addresses of the operands' first elements."""


@dataclass(frozen=True)
class HostBlas:
    """The functions by data type. Each takes all arguments by address, as Fortran does."""

    functions: Mapping[str, Callable[..., None]]

    @staticmethod
    def of_scipy() -> HostBlas:
        """The BLAS that SciPy calls. Raises LaunchError if its integers do not have 32 bits."""
        from scipy.linalg import cython_blas

        exported = cython_blas.__pyx_capi__
        return HostBlas({dtype: _function(exported[name]) for dtype, name in FUNCTIONS.items()})

    def calls(self, step: LibraryCall, addresses: Addresses) -> list[Callable[[], object]]:
        """The function calls to make, in order. They hold addresses, and keep no memory alive. Raises LaunchError for a
        data type that BLAS does not have."""
        return {"gemm": self._gemm}[step.function](GemmCall.of(step), addresses)

    def _gemm(self, call: GemmCall, addresses: Addresses) -> list[Callable[[], object]]:
        """A copy of C into D unless beta is 0, then a gemm for each matrix."""
        if call.dtype not in self.functions:
            raise LaunchError("data type", f"the host's BLAS has no {call.dtype}")
        copying = [partial(_copy, call, addresses)] if call.beta and addresses["C"] != addresses["D"] else []
        function = self.functions[call.dtype]
        gemms = (partial(function, *_arguments(call, addresses, index)) for index in range(call.batch))
        return [*copying, *gemms]


def _arguments(call: GemmCall, addresses: Addresses, index: int) -> list[Any]:
    """Arguments of `?gemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)` for one matrix of a batch."""
    real = REALS[call.dtype]
    size = ctypes.sizeof(real)

    def address(name: str, stride: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(addresses[name] + index * stride * size)

    def integer(value: int) -> Any:
        return ctypes.byref(ctypes.c_int(value))

    return [
        ctypes.c_char_p(b"T" if call.transpose_a else b"N"),
        ctypes.c_char_p(b"T" if call.transpose_b else b"N"),
        *(integer(extent) for extent in (call.m, call.n, call.k)),
        ctypes.byref(real(call.alpha)),
        address("A", call.stride_a),
        integer(call.lda),
        address("B", call.stride_b),
        integer(call.ldb),
        ctypes.byref(real(call.beta)),
        address("D", call.stride_d),
        integer(call.ldd),
    ]


def _copy(call: GemmCall, addresses: Addresses) -> None:
    """Copy C into D, since BLAS adds to its output. Nothing between the columns is written."""
    source = _columns(call, addresses["C"], call.ldc, call.stride_c)
    _columns(call, addresses["D"], call.ldd, call.stride_d)[...] = source


def _columns(call: GemmCall, address: int, leading: int, stride: int) -> NDArray[Any]:
    """The memory at an address as an array, batch x N x M."""
    size = np.dtype(call.dtype).itemsize
    pointer = ctypes.cast(ctypes.c_void_p(address), ctypes.POINTER(REALS[call.dtype]))
    first: NDArray[Any] = np.ctypeslib.as_array(pointer, (call.m,))
    return as_strided(first, (call.batch, call.n, call.m), (stride * size, leading * size, size))


def _function(capsule: Any) -> Callable[..., None]:
    """The C function in a capsule. The capsule's name is the function's signature."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name: bytes = name_of(capsule)
    if name.count(b" int *") != 6:
        raise LaunchError("no library", f"SciPy's BLAS does not take 32-bit integers: {name.decode()}")
    # Argument types are not declared, since all arguments are ctypes values: checking 13 types doubles the call's time.
    return ctypes.CFUNCTYPE(None)(pointer_of(capsule, name))
