"""cuBLASLt by its C interface: GEMMs that plain BLAS does not have, with float8, a bias or an activation.

Source: NVIDIA's cuBLAS documentation, cublasLtMatmul; enumerations from cublasLt.h.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tunesmith.records import LibraryPlan

from ..base import NOT_SUPPORTED, LaunchError
from ..gemm_call import GemmCall
from .cublas_names import DATA_TYPES, Addresses, checked, failure, sums_of

_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _POINTERS = 3, 4, 7, {"Bias": 8, "ScaleA": 17, "ScaleB": 18}
"""CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB, _EPILOGUE; _BIAS_POINTER, _A_SCALE_POINTER, _B_SCALE_POINTER."""
_BATCH_COUNT, _BATCH_STRIDE = 5, 6
"""CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT and _STRIDED_BATCH_OFFSET."""
_MOST_WORKSPACE, _ALIGNMENTS = 1, {"A": 5, "B": 6, "C": 7, "D": 8}
"""CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES and _MIN_ALIGNMENT_A_BYTES to _D_BYTES."""
_EPILOGUES = {("none", False): 1, ("relu", False): 2, ("none", True): 4, ("relu", True): 6}
"""CUBLASLT_EPILOGUE_DEFAULT, _RELU, _BIAS, _RELU_BIAS, by activation and whether there is a bias."""
_SCALAR_TYPES = {ctypes.c_float: "float32", ctypes.c_double: "float64", ctypes.c_int: "int32"}

_ATTRIBUTES = {
    "algorithm": (0, ctypes.c_int32),
    "tile": (1, ctypes.c_uint32),
    "parts": (2, ctypes.c_uint32),
    "reduction": (3, ctypes.c_uint32),
    "option": (5, ctypes.c_uint32),
    "stages": (6, ctypes.c_uint32),
    "cluster": (8, ctypes.c_uint16),
}
"""CUBLASLT_ALGO_CONFIG_ID, _TILE_ID, _SPLITK_NUM, _REDUCTION_SCHEME, _CUSTOM_OPTION, _STAGES_ID and _CLUSTER_SHAPE_ID,
with their types, by the fields of LibraryPlan."""

ALIGNMENT = 256
"""The largest alignment in bytes that cuBLASLt looks at."""


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class CuBlasLt:
    """cuBLASLt with its handle, which is made at the first call. `library` is cuBLASLt as ctypes loaded it."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handle: ctypes.c_void_p | None = None
        self._algorithms: dict[GemmCall, dict[tuple[int, ...], Any]] = {}

    def matmul(self, step: GemmCall, addresses: Addresses) -> Callable[[int, Addresses], None]:
        """A function that enqueues a call on the stream and the addresses that it receives.

        The call's descriptors are made here, once, and the algorithm for `addresses`, the first ones, is chosen.
        Algorithms are kept by call and by the alignment of its addresses. The workspace is the plan's, at address "".
        Raises LaunchError for a call that the library does not support.
        """
        self._open()
        descriptors = _Descriptors(self._library, step, addresses)
        layouts = descriptors.layouts
        _, scalar = sums_of(step)
        alpha, beta = (scalar(int(value) if scalar is ctypes.c_int else value) for value in (step.alpha, step.beta))
        a, b, c, d, workspace, on_stream = (ctypes.c_void_p() for _ in range(6))
        arguments = [
            *(self._handle, descriptors.operation, ctypes.byref(alpha), a, layouts["A"], b, layouts["B"]),
            *(ctypes.byref(beta), c, layouts["C"], d, layouts["D"]),
        ]
        rest = workspace, ctypes.c_size_t(step.workspace_bytes), on_stream
        function, read = self._library.cublasLtMatmul, "C" if step.beta else "D"
        algorithms = self._algorithms.setdefault(step, {})

        def algorithm(addresses: Addresses) -> Any:
            alignments = tuple([_alignment(addresses[name]) for name in _ALIGNMENTS])
            if alignments not in algorithms:
                algorithms[alignments] = ctypes.byref(descriptors.heuristic(self._handle, alignments).algorithm)
            return algorithms[alignments]

        def enqueue(stream: int, addresses: Addresses) -> None:
            descriptors.set_pointers(addresses)
            a.value, b.value, c.value = addresses["A"], addresses["B"], addresses[read]
            d.value, workspace.value, on_stream.value = addresses["D"], addresses[""], stream
            if status := function(*arguments, algorithm(addresses), *rest):
                raise failure("cublasLtMatmul", status)

        algorithm(addresses)
        return enqueue

    def foreseen(self, step: GemmCall) -> LibraryPlan:
        """The first result of the heuristic, for operands that are aligned to ALIGNMENT. Sums may be as loose as those
        of calls that are timed (`GemmCall.loose_sums`). Raises LaunchError for a call that the library does not
        support."""
        self._open()
        descriptors = _Descriptors(self._library, step, dict.fromkeys(_pointer_operands(step), ALIGNMENT))
        heuristic = descriptors.heuristic(self._handle, (ALIGNMENT,) * len(_ALIGNMENTS))
        values = {name: self._attribute(heuristic, *at) for name, at in _ATTRIBUTES.items()}
        return LibraryPlan(**values, workspace=int(heuristic.workspace), waves=float(heuristic.waves))

    def _open(self) -> None:
        if self._handle is None:
            handle = ctypes.c_void_p()
            checked(self._library, "cublasLtCreate", ctypes.byref(handle))
            self._handle = handle

    def _attribute(self, heuristic: _Heuristic, attribute: int, kind: Any) -> int:
        """A number of an algorithm; 0 for one that this version of the library does not have."""
        value, written = kind(), ctypes.c_size_t()
        function = self._library.cublasLtMatmulAlgoConfigGetAttribute
        places = ctypes.byref(heuristic.algorithm), ctypes.c_int(attribute), ctypes.byref(value)
        failed = function(*places, ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(written))
        return 0 if failed else int(value.value)


class _Descriptors:
    """The descriptors of an operation and its four matrices. They are destroyed with the last call that needs them."""

    def __init__(self, library: Any, step: GemmCall, addresses: Addresses) -> None:
        self._library, self._workspace = library, step.workspace_bytes
        compute, scalar = sums_of(step)
        self.operation = self._create("MatmulDesc", ctypes.c_int(compute), _data_type(_SCALAR_TYPES[scalar]))
        for attribute, value in (
            (_TRANSPOSE_A, step.transpose_a),
            (_TRANSPOSE_B, step.transpose_b),
            (_EPILOGUE, _EPILOGUES[step.activation, step.bias]),
        ):
            self._set("MatmulDesc", self.operation, attribute, ctypes.c_int32(value))
        self._pointers: dict[str, int | None] = dict.fromkeys(_pointer_operands(step))
        self.set_pointers(addresses)
        self.layouts = {name: self._layout(step, *matrix) for name, matrix in _matrices(step).items()}

    def set_pointers(self, addresses: Addresses) -> None:
        """Set the addresses of the bias and of scales, which belong to the operation."""
        for name, address in self._pointers.items():
            if address != addresses[name]:
                self._pointers[name] = addresses[name]
                self._set("MatmulDesc", self.operation, _POINTERS[name], ctypes.c_void_p(addresses[name]))

    def heuristic(self, handle: ctypes.c_void_p | None, alignments: Sequence[int]) -> _Heuristic:
        """The first result of the library's heuristic, for these alignments of A, B, C and D in bytes."""
        preference = self._create("MatmulPreference")
        self._set("MatmulPreference", preference, _MOST_WORKSPACE, ctypes.c_uint64(self._workspace))
        for attribute, alignment in zip(_ALIGNMENTS.values(), alignments, strict=True):
            self._set("MatmulPreference", preference, attribute, ctypes.c_uint32(alignment))
        heuristic, count = _Heuristic(), ctypes.c_int()
        matrices = [self.layouts[name] for name in "ABCD"]
        results = (ctypes.c_int(1), ctypes.byref(heuristic), ctypes.byref(count))
        function = "cublasLtMatmulAlgoGetHeuristic"
        checked(self._library, function, handle, self.operation, *matrices, preference, *results)
        if not count.value:
            raise LaunchError(NOT_SUPPORTED, "cuBLASLt has no algorithm for this call")
        return heuristic

    def _layout(self, step: GemmCall, dtype: str, rows: int, columns: int, leading: int, stride: int) -> Any:
        extents = (ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(leading))
        layout = self._create("MatrixLayout", _data_type(dtype), *extents)
        self._set("MatrixLayout", layout, _BATCH_COUNT, ctypes.c_int32(step.batch))
        self._set("MatrixLayout", layout, _BATCH_STRIDE, ctypes.c_int64(stride))
        return layout

    def _create(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        descriptor = ctypes.c_void_p()
        checked(self._library, f"cublasLt{kind}Create", ctypes.byref(descriptor), *arguments)
        weakref.finalize(self, getattr(self._library, f"cublasLt{kind}Destroy"), descriptor)
        return descriptor

    def _set(self, kind: str, descriptor: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        function = f"cublasLt{kind}SetAttribute"
        checked(self._library, function, descriptor, ctypes.c_int(attribute), ctypes.byref(value), size)


def _pointer_operands(step: GemmCall) -> tuple[str, ...]:
    return ("Bias",) * step.bias + ("ScaleA", "ScaleB") * step.scaled


def _matrices(step: GemmCall) -> dict[str, tuple[str, int, int, int, int]]:
    """Type, stored rows and columns, leading dimension, and stride to the next matrix of the batch, by operand.

    If beta is 0, C is not read, and D takes C's part.
    """
    a = (step.k, step.m) if step.transpose_a else (step.m, step.k)
    b = (step.n, step.k) if step.transpose_b else (step.k, step.n)
    d = (step.dest, step.m, step.n, step.ldd, step.stride_d)
    return {
        "A": (step.dtype, *a, step.lda, step.stride_a),
        "B": (step.dtype, *b, step.ldb, step.stride_b),
        "C": (step.dest, step.m, step.n, step.ldc, step.stride_c) if step.beta else d,
        "D": d,
    }


def _data_type(dtype: str) -> ctypes.c_int:
    return ctypes.c_int(DATA_TYPES[dtype])


def _alignment(address: int) -> int:
    """The alignment of an address in bytes, a power of two up to ALIGNMENT."""
    return min(address & -address or ALIGNMENT, ALIGNMENT)
