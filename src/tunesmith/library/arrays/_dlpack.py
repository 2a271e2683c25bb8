"""Views of arrays on a GPU by DLPack, for libraries without the CUDA array interface.

Source of the layouts and numbers: `dlpack.h` of DLPack 1.0 and "Python Specification for DLPack".
"""

from __future__ import annotations

import ctypes
from struct import Struct
from typing import Any

from ._view import View, natural_strides

HOST = (1, 3)
"""Kinds of devices whose memory lies on the host: the CPU, and memory pinned for a GPU."""

CUDA, CUDA_MANAGED = 2, 13
"""Kinds of devices that are GPUs. CUDA's managed memory counts as memory of a GPU."""

NAMES = {
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    (2, 16): "float16",
    (2, 32): "float32",
    (2, 64): "float64",
    (4, 16): "bfloat16",
    (10, 8): "float8_e4m3fn",
    (12, 8): "float8_e5m2",
}
"""NumPy's names of data types, by DLPack's type code and number of bits."""

READ_ONLY = 1
"""The flag of an array that must not be written."""

DEFAULT_STREAM = 1
"""The number of the default stream in a call of `__dlpack__`: 0 would be ambiguous."""


TENSOR = Struct("@PiiiBBHPPQ")
"""`DLTensor`: data, device's kind and number, ndim, type's code, bits and lanes, shape, strides, byte offset."""

VERSION = Struct("@IIPPQ")
"""The fields before the tensor in `DLManagedTensorVersioned`: major and minor version, context, deleter, flags."""


def imported(array: Any, name: str, stream: int, beside: str) -> View:
    """The view of an array whose producer has made its work visible to `stream`. `beside` names an argument on a GPU,
    for messages. Raises ValueError for an array on the host, TypeError for one on a device that is no NVIDIA GPU.

    The view keeps the capsule alive. The capsule's destructor gives the memory back to the producer.
    """
    kind = int(array.__dlpack_device__()[0])
    if kind in HOST:
        raise ValueError(f"{name} lies on the host, {beside} on a GPU: move them to one device first")
    if kind not in (CUDA, CUDA_MANAGED):
        raise TypeError(f"{name} lies on DLPack's device {kind}; arrays are taken on the host and on NVIDIA GPUs")
    waits_for = stream or DEFAULT_STREAM
    try:
        capsule = array.__dlpack__(stream=waits_for, max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        capsule = array.__dlpack__(stream=waits_for)
    address, flags = _opened(capsule)
    data, _, number, ndim, code, bits, lanes, of_shape, of_strides, offset = _read(TENSOR, address)
    numbers, size = Struct(f"@{ndim}q"), bits // 8
    shape = _read(numbers, of_shape)
    strides = tuple(step * size for step in _read(numbers, of_strides)) if of_strides else natural_strides(shape, size)
    dtype = NAMES.get((code, bits)) if lanes == 1 else None
    type_name = dtype or f"DLPack's type {code} of {bits} bits"
    return View(type_name, size, shape, strides, data + offset, bool(flags & READ_ONLY), number=number, owner=capsule)


def _read(layout: Struct, address: int) -> tuple[int, ...]:
    return layout.unpack(ctypes.string_at(address, layout.size)) if layout.size else ()


def _opened(capsule: Any) -> tuple[int, int]:
    """The address of a capsule's tensor, and the capsule's flags."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name: bytes = name_of(capsule)
    address = pointer_of(capsule, name)
    if name == b"dltensor_versioned":
        return address + VERSION.size, _read(VERSION, address)[-1]
    return address, 0
