"""A launch's arguments as bytes, each at an address of its own. The CUDA driver copies them at a launch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from tunesmith.records import (
    Argument,
    Configuration,
    LocalArgument,
    OperandArgument,
    ScalarArgument,
    TensorMapArgument,
    WorkspaceArgument,
)

from ..base import LaunchError

ALIGNMENT = 128
"""Bytes. A tensor map needs this alignment since CUDA 13 (before, 64); every other type needs less."""

_NAMED_ALIKE = ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bfloat16")
ELEMENT_TYPES = {
    **{dtype: dtype.upper() for dtype in _NAMED_ALIKE},
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "int8"), "UINT8"),
}
"""NumPy's name of a type to the driver's, `CU_TENSOR_MAP_DATA_TYPE_...`. A copy does not interpret the bytes."""

ELEMENT_BYTES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
"""Bytes of an element of the types that NumPy itself does not know."""


@dataclass(frozen=True, slots=True)
class TensorMap:
    """The arguments of `cuTensorMapEncodeTiled`: innermost dimension first; strides in bytes, without the first."""

    element_type: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    @staticmethod
    def of(argument: TensorMapArgument, address: int, swizzle: int = 0, block: Sequence[int] = ()) -> TensorMap:
        """`block` is the shape that one copy fetches, if the compiler split the argument's block into several."""
        size = ELEMENT_BYTES.get(argument.dtype) or np.dtype(argument.dtype).itemsize
        if argument.strides[-1] != 1:
            raise LaunchError("tensor map", f"{argument.name}: the last stride is {argument.strides[-1]}, not 1")
        return TensorMap(
            element_type=ELEMENT_TYPES[argument.dtype],
            address=address,
            shape=tuple(reversed(argument.shape)),
            strides=tuple(stride * size for stride in reversed(argument.strides[:-1])),
            box=tuple(reversed(tuple(block) or argument.block)),
            swizzle=swizzle,
        )


@dataclass(frozen=True, slots=True)
class Convention:
    """How a binary's kernels differ from the plan's launches, by its metadata. `toolchains.triton` explains each."""

    dynamic_shared_bytes: int = 0
    tensor_maps: tuple[tuple[int, tuple[int, ...]], ...] = ()
    tensor_map_sizes: bool = False
    null_pointers: int = 0

    @staticmethod
    def of(metadata: Configuration) -> Convention:
        names = (field.name for field in fields(Convention))
        return Convention(**metadata.only(names))  # type: ignore[arg-type]  # typed by the toolchain that wrote them


Addressed = OperandArgument | WorkspaceArgument | TensorMapArgument


def location(argument: Addressed) -> tuple[str, int]:
    """The operand's name (the workspace's is ""), and the offset in bytes."""
    match argument:
        case OperandArgument(name):
            return name, 0
        case WorkspaceArgument(offset):
            return "", offset
        case TensorMapArgument(name=name, offset=offset):
            return name, offset


def packed(
    arguments: Sequence[Argument],
    convention: Convention,
    addresses: Mapping[str, int],
    encode: Callable[[TensorMap], bytes],
) -> Iterator[tuple[bytes, Addressed | None]]:
    """The kernel's parameters in order, each with the argument whose address it contains. `addresses` are those of
    operands by name; the workspace's name is "". Raises LaunchError for an argument that a CUDA kernel cannot take."""
    encodings = iter(convention.tensor_maps)
    for argument in arguments:
        match argument:
            case OperandArgument() | WorkspaceArgument():
                name, offset = location(argument)
                yield np.uint64(addresses[name] + offset).tobytes(), argument
            case ScalarArgument(value, dtype):
                yield np.array(value, dtype).tobytes(), None
            case TensorMapArgument(name, offset=offset):
                swizzle, block = next(encodings, (argument.swizzle, ()))
                yield encode(TensorMap.of(argument, addresses[name] + offset, swizzle, block)), argument
                if convention.tensor_map_sizes:
                    yield from ((np.int32(extent).tobytes(), None) for extent in argument.shape)
                    yield from ((np.int64(stride).tobytes(), None) for stride in argument.strides)
            case LocalArgument():
                raise LaunchError("arguments", "CUDA kernels have no local memory arguments; use Launch.shared_bytes")
    yield from [(bytes(8), None)] * convention.null_pointers


class Parameters:
    """The bytes of each parameter at an aligned address, and `pointer`, the address of the list of these addresses.

    `words` are the first 8 bytes of each parameter. They may be changed between launches, since the driver copies them.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        slots = [-(-len(value) // ALIGNMENT) * ALIGNMENT for value in values]
        self._storage = ctypes.create_string_buffer(sum(slots) + ALIGNMENT)
        address = -(-ctypes.addressof(self._storage) // ALIGNMENT) * ALIGNMENT
        self._addresses = (ctypes.c_void_p * len(values))()
        self.words: list[ctypes.c_uint64] = []
        for index, (value, slot) in enumerate(zip(values, slots, strict=True)):
            ctypes.memmove(address, value, len(value))
            self._addresses[index] = address
            self.words.append(ctypes.c_uint64.from_address(address))
            address += slot

        self.pointer = ctypes.addressof(self._addresses)
