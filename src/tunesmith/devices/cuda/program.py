"""Loaded modules of the CUDA driver, their kernels, and launches of the kernels."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tunesmith.records import Launch, TensorMapArgument

from .arguments import Convention, Parameters, TensorMap, location, packed
from .driver import bindings, call, destroy_handle, driver_function, error_of_status
from .native import NativeStep, address_of

TENSOR_MAP_BYTES = 128

SHARED_BYTES_BY_DEFAULT = 48 * 1024
"""Bytes of dynamic shared memory that a kernel may use without a special attribute. Source: CUDA programming guide."""


@dataclass(slots=True)
class CudaFunction:
    """A function of a loaded module. `launched`: it ran before, so that its code is loaded."""

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
    """A loaded module. It is unloaded when no object refers to it any more, since a tuning run loads thousands."""

    kernels: Mapping[str, CudaFunction]
    convention: Convention

    @staticmethod
    def of(module: Any, kernels: Mapping[str, CudaFunction], convention: Convention) -> LoadedModule:
        loaded = LoadedModule(kernels, convention)
        weakref.finalize(loaded, destroy_handle, "cuModuleUnload", module).atexit = False
        return loaded


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h, whose value is up to three numbers."""

    _fields_ = (
        ("name", ctypes.c_uint),
        ("padding", ctypes.c_uint),
        ("value", ctypes.c_uint * 3),
        ("rest", ctypes.c_ubyte * 52),
    )


CLUSTER_DIMENSION, PROGRAMMATIC_STREAM_SERIALIZATION = 4, 6
"""Names of attributes (CUlaunchAttributeID of cuda.h): the size of clusters, and that a launch may start early."""


def attributes_of(step: Launch) -> ctypes.Array[LaunchAttribute]:
    """What cuLaunchKernelEx is told beside the sizes."""
    values: dict[int, tuple[int, ...]] = {}
    if step.cluster > 1:
        values[CLUSTER_DIMENSION] = (step.cluster, 1, 1)
    if step.early:
        values[PROGRAMMATIC_STREAM_SERIALIZATION] = (1,)
    attributes = (LaunchAttribute(name, 0, value) for name, value in values.items())
    return (LaunchAttribute * len(values))(*attributes)


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = (
        *((f"{size}_{axis}", ctypes.c_uint) for size in ("grid", "work_group") for axis in "xyz"),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


class RepeatedLaunch:
    """A launch to repeat cheaply: the driver's arguments are kept, and only addresses, the stream and the grid are
    written for a launch.

    `addresses` are those of operands by name; the workspace's name is "".
    """

    def __init__(self, step: Launch, program: LoadedModule, addresses: Mapping[str, int]) -> None:
        self.kernel, self._program = program.kernels[step.entry], program
        shared = step.shared_bytes + program.convention.dynamic_shared_bytes
        self.kernel.allow_shared(shared)
        self._packed = parameters = list(packed(step.arguments, program.convention, addresses, encoded))
        self._parameters = Parameters([value for value, _ in parameters])
        self._pointers: list[tuple[ctypes.c_uint64, str, int]] = []
        self._maps: list[_MovableMap] = []
        for word, (_, argument) in zip(self._parameters.words, parameters, strict=True):
            if isinstance(argument, TensorMapArgument):
                address = addresses[argument.name] + argument.offset
                self._maps.append(_MovableMap(ctypes.byref(word), argument.name, argument.offset, address))
            elif argument is not None:
                self._pointers.append((word, *location(argument)))
        self._config = LaunchConfig(*step.grid, *step.work_group, shared)
        self._attributes = attributes_of(step)
        if self._attributes:
            self._config.attributes = ctypes.addressof(self._attributes)
            self._config.attribute_count = len(self._attributes)
        function, pointer = ctypes.c_void_p(int(self.kernel.function)), ctypes.c_void_p(self._parameters.pointer)
        self._launch = driver_function("cuLaunchKernelEx")
        self._arguments = (ctypes.byref(self._config), function, pointer, None)

    def enqueue(self, stream: int, grid: int, numbers: Iterable[tuple[int, int]] = ()) -> None:
        """Launch on a stream, by its handle, with `grid` work-groups in x. `numbers` are (parameter index, integer or
        address) pairs to write."""
        words = self._parameters.words
        for index, number in numbers:
            words[index].value = number
        self._config.grid_x = grid
        self._enqueue(stream)

    def enqueue_at(self, stream: int, addresses: Mapping[str, int]) -> None:
        """Launch with these addresses of operands and workspace, in pointers and in tensor maps."""
        for word, name, offset in self._pointers:
            word.value = addresses[name] + offset
        for tensor_map in self._maps:
            address = addresses[tensor_map.operand] + tensor_map.offset
            if address != tensor_map.address:
                tensor_map.move(address)
        self._enqueue(stream)

    def native(self, slots: Mapping[str, int]) -> NativeStep:
        """The launch for `tunesmith_native`, with copies of its parameters. `slots` are those of operands by name."""
        pointers: list[tuple[int, int, int]] = []
        maps: list[tuple[int, int, int]] = []
        for index, (_, argument) in enumerate(self._packed):
            if argument is not None:
                name, offset = location(argument)
                (maps if isinstance(argument, TensorMapArgument) else pointers).append((index, slots[name], offset))
        values = tuple(value for value, _ in self._packed)
        config = bytes(self._config), LaunchConfig.stream.offset
        function = address_of(self._launch)
        words = 0, int(self.kernel.function), 0, 0
        kernel = *config, values, tuple(pointers), tuple(maps)
        return NativeStep("cuLaunchKernelEx", function, words, (), kernel, kept=self._attributes)

    def _enqueue(self, stream: int) -> None:
        self._config.stream = stream
        if status := self._launch(*self._arguments):
            raise error_of_status("cuLaunchKernelEx", status)
        self.kernel.launched = True


@dataclass(slots=True)
class _MovableMap:
    """A tensor map among the parameters: where it lies (`pointer`), and the address that it maps."""

    pointer: Any
    operand: str
    offset: int
    address: int
    _next: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)
    _replace: Callable[..., int] = field(default_factory=lambda: driver_function("cuTensorMapReplaceAddress"))

    def move(self, address: int) -> None:
        """Let the driver write another address into the map. Encoding another map takes much longer."""
        self._next.value = address
        if status := self._replace(self.pointer, self._next):
            raise error_of_status("cuTensorMapReplaceAddress", status)
        self.address = address


def encoded(tensor_map: TensorMap) -> bytes:
    """The 128 bytes that a kernel takes by value. Raises LaunchError if the copy engine does not support the map."""
    driver = bindings()
    rank = len(tensor_map.shape)
    tensor_map_handle = call(
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
    return ctypes.string_at(int(tensor_map_handle.getPtr()), TENSOR_MAP_BYTES)
