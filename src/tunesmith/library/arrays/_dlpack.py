"""Arrays on a GPU by DLPack, for libraries that show no CUDA array interface.

Source of the layouts and numbers: `dlpack.h` of DLPack 1.0 and "Python Specification for DLPack".
"""

from __future__ import annotations

import ctypes
from typing import Any

from ._view import View, natural_strides

HOST = (1, 3)
"""Kinds of devices whose memory is the host's: the CPU, and memory pinned for a GPU."""

CUDA, CUDA_MANAGED = 2, 13
"""Kinds of devices; CUDA's managed memory is on a GPU as well."""

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
"""NumPy's names by a type's code and bits."""

READ_ONLY = 1
"""The flag of an array that must not be written."""

DEFAULT_STREAM = 1
"""How a producer is told of the default stream: 0 would be ambiguous."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def imported(given: Any, name: str, stream: int, beside: str) -> View:
    """An array whose producer has made its work visible to that stream. Raises ValueError for what lies on the host,
    TypeError for what lies on another device that is no NVIDIA GPU.

    The capsule stays ours to keep, and gives the memory back to its producer when it goes.
    """
    kind = int(given.__dlpack_device__()[0])
    if kind in HOST:
        raise ValueError(f"{name} lies on the host, {beside} on a GPU: move them to one device first")
    if kind not in (CUDA, CUDA_MANAGED):
        raise TypeError(f"{name} lies on DLPack's device {kind}; arrays are taken on the host and on NVIDIA GPUs")
    waits_for = stream or DEFAULT_STREAM
    try:
        capsule = given.__dlpack__(stream=waits_for, max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        capsule = given.__dlpack__(stream=waits_for)
    tensor, read_only = _opened(capsule)
    shape = tuple(tensor.shape[: tensor.ndim])
    size = tensor.bits // 8
    strides = (
        tuple(step * size for step in tensor.strides[: tensor.ndim]) if tensor.strides else natural_strides(shape, size)
    )
    dtype = NAMES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    return View(
        dtype=dtype or f"DLPack's type {tensor.code} of {tensor.bits} bits",
        itemsize=size,
        shape=shape,
        strides=strides,
        address=(tensor.data or 0) + tensor.byte_offset,
        read_only=read_only,
        number=tensor.device_id,
        owner=capsule,
    )


def _opened(capsule: Any) -> tuple[_Tensor, bool]:
    """What a capsule holds, and whether it must not be written."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name: bytes = name_of(capsule)
    address = pointer_of(capsule, name)
    if name == b"dltensor_versioned":
        versioned = _Versioned.from_address(address)
        return versioned.tensor, bool(versioned.flags & READ_ONLY)
    return _Tensor.from_address(address), False
