"""Loaded modules of the CUDA driver, their kernels, and launches of them."""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tunesmith.records import Launch, OperandArgument, TensorMapArgument, WorkspaceArgument

from ._base import LaunchError
from ._cuda_arguments import Convention, Parameters, TensorMap, packed
from ._cuda_driver import bindings, call

TENSOR_MAP_BYTES = 128

REMEMBERED_MAPS = 256
"""Addresses whose encodings a tensor map keeps."""

SHARED_BYTES_BY_DEFAULT = 48 * 1024
"""Dynamic shared memory that a kernel gets without asking. Source: CUDA programming guide."""


@dataclass(slots=True)
class Kernel:
    """A function of a loaded module. `launched`: it ran before, so that no launch has to wait for its code."""

    function: Any
    shared_bytes: int = SHARED_BYTES_BY_DEFAULT
    launched: bool = False

    def allow_shared(self, size: int) -> None:
        if size > self.shared_bytes:
            attribute = bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("cuFuncSetAttribute", self.function, attribute, size)
            self.shared_bytes = size


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LoadedModule:
    """Unloaded when nobody, no prepared plan either, refers to it any more; a tuning run loads thousands."""

    kernels: Mapping[str, Kernel]
    convention: Convention

    @staticmethod
    def of(module: Any, kernels: Mapping[str, Kernel], convention: Convention) -> LoadedModule:
        loaded = LoadedModule(kernels, convention)
        weakref.finalize(loaded, _unload, module).atexit = False
        return loaded


class Repeated:
    """A launch with its parameters, which is made many times and costs little then.

    `addresses` are those of operands, "" being the workspace.
    """

    def __init__(self, step: Launch, program: LoadedModule, addresses: Mapping[str, int]) -> None:
        self.kernel, self._program = program.kernels[step.entry], program
        shared = step.shared_bytes + program.convention.dynamic_shared_bytes
        self.kernel.allow_shared(shared)
        self._places = _Places(addresses)
        for value in packed(step.arguments, program.convention, self._places.address, self._places.encode):
            self._places.values.append(value)
        self._parameters = Parameters(self._places.values)
        self._rest = (*step.grid[1:], *step.work_group, shared)

    def move(self, addresses: Mapping[str, int]) -> None:
        """Other addresses of operands and workspace, in pointers and in tensor maps."""
        words = self._parameters.words
        for place, name, offset in self._places.pointers:
            words[place].value = addresses[name] + offset
        for moving in self._places.maps:
            address = addresses[moving.operand] + moving.offset
            if address != moving.present:
                self._parameters.replace(moving.place, moving.at(address))

    def put(self, numbers: Sequence[tuple[int, int]]) -> None:
        """At each place of a parameter an integer or an address."""
        words = self._parameters.words
        for place, number in numbers:
            words[place].value = number

    def enqueue(self, stream: Any, grid: int) -> None:
        """With `grid` work-groups in x."""
        call("cuLaunchKernel", self.kernel.function, grid, *self._rest, stream, self._parameters.pointer, 0)
        self.kernel.launched = True


@dataclass(slots=True)
class _MovingMap:
    """The tensor map that is parameter number `place`, with the encodings of the addresses that it had last."""

    place: int
    operand: str
    offset: int
    made: TensorMap
    present: int
    encodings: dict[int, bytes]

    def at(self, address: int) -> bytes:
        """Remembered, since a program's buffers come again and encoding one takes about as long as a launch."""
        known = self.encodings.get(address)
        if known is None:
            if len(self.encodings) >= REMEMBERED_MAPS:
                self.encodings.clear()
            known = self.encodings[address] = encoded(replace(self.made, address=address))
        self.present = address
        return known


class _Places:
    """Which parameters hold addresses, found out while the parameters are packed one by one into `values`."""

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self._addresses, self._mapped = addresses, ("", 0)
        self.values: list[bytes] = []
        self.pointers: list[tuple[int, str, int]] = []
        self.maps: list[_MovingMap] = []

    def address(self, argument: OperandArgument | TensorMapArgument | WorkspaceArgument) -> int:
        name = "" if isinstance(argument, WorkspaceArgument) else argument.name
        offset = 0 if isinstance(argument, OperandArgument) else argument.offset
        if isinstance(argument, TensorMapArgument):
            self._mapped = name, offset
        else:
            self.pointers.append((len(self.values), name, offset))
        return self._addresses[name] + offset

    def encode(self, tensor_map: TensorMap) -> bytes:
        made = encoded(tensor_map)
        address = tensor_map.address
        self.maps.append(_MovingMap(len(self.values), *self._mapped, tensor_map, address, {address: made}))
        return made


def _unload(module: Any) -> None:
    with contextlib.suppress(LaunchError):
        call("cuModuleUnload", module)


def encoded(tensor_map: TensorMap) -> bytes:
    """The 128 bytes that a kernel takes by value. Raises LaunchError for what the copy engine cannot do."""
    driver = bindings()
    rank = len(tensor_map.shape)
    made = call(
        "cuTensorMapEncodeTiled",
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{tensor_map.element_type}"),
        rank,
        tensor_map.address,
        [driver.cuuint64_t(extent) for extent in tensor_map.shape],
        [driver.cuuint64_t(stride) for stride in tensor_map.strides],
        [driver.cuuint32_t(extent) for extent in tensor_map.box],
        [driver.cuuint32_t(1)] * rank,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle(tensor_map.swizzle),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    return ctypes.string_at(int(made.getPtr()), TENSOR_MAP_BYTES)
