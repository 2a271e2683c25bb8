"""NVIDIA GPUs through the CUDA driver."""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tunesmith.records import (
    Binary,
    Launch,
    LibraryCall,
    LibraryPlan,
    Module,
    OperandArgument,
    Plan,
    Step,
    Target,
    UserError,
)
from tunesmith.toolchains.blas import LANGUAGE as BLAS
from tunesmith.toolchains.forked import CUDA

from ..api import Api, FoundDevice
from ..base import Bytes, Device, LaunchError, Prepared
from .arguments import Convention
from .cublas import BlasCallState, CuBlas
from .driver import REMEDY, bindings, call, destroy_handle
from .program import CudaFunction, LoadedModule
from .program import RepeatedLaunch as RepeatedLaunch
from .repeated import RepeatedPlan as RepeatedPlan
from .repeated import bound_step
from .target import cuda_target

ALIGNMENT = 256
"""Bytes to which the driver aligns memory. No type and no copy engine needs more."""

HELD_BACK = 64
"""Commands that may wait behind a closed gate. The driver's queue holds about a thousand."""


class Cuda(Api):
    name, languages = "CUDA", ("CUDA", "Triton", BLAS)
    trial = Module(
        "CUDA",
        'extern "C" __global__ void trial(int *out)\n'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = i + 1; }\n",
        ("trial",),
    )

    def find(self) -> tuple[FoundDevice, ...]:
        try:
            call("cuInit", 0)
            count = call("cuDeviceGetCount")
        except ImportError as missing:
            return (FoundDevice("CUDA", problem=f"cannot be used: {missing}", remedy=REMEDY),)
        except (LaunchError, RuntimeError) as failed:
            return (
                FoundDevice("CUDA", problem=f"no NVIDIA driver answers ({failed})", remedy="install NVIDIA's driver"),
            )
        if not count:
            return (FoundDevice("CUDA", problem="the driver shows no GPU", remedy="look at CUDA_VISIBLE_DEVICES"),)
        targets = [cuda_target(ordinal) for ordinal in range(count)]
        return tuple(FoundDevice(target.name, target) for target in targets)

    def open(self, target: Target) -> Device:
        ordinal = int(target.selector.partition(":")[2])
        devices = self.find()
        if ordinal >= len(devices) or devices[ordinal].target is None or devices[ordinal].name != target.name:
            names = ", ".join(device.name for device in devices)
            raise UserError("device", f"{target.selector} is no {target.name} any more", f"found: {names}")
        return CudaDevice(target, ordinal)


@dataclass(frozen=True, slots=True)
class CudaMemory:
    """Device memory. If `owned` is False it is a part of other memory, and lives as long as that memory."""

    address: int
    size: int
    owned: bool


@dataclass(eq=False)
class CudaPrepared(Prepared):
    """Commands ready to be enqueued. It keeps `programs` loaded."""

    commands: Sequence[Callable[[], object]]
    kernels: Sequence[CudaFunction | BlasCallState]
    programs: Sequence[object]

    def enqueue(self) -> None:
        CUDA.use()
        for command in self.commands:
            command()
        for kernel in self.kernels:
            kernel.launched = True

    @property
    def launched(self) -> bool:
        return all(kernel.launched for kernel in self.kernels)


class CudaDevice(Device):
    """One GPU: its primary context and one stream of our own. The context becomes current in the thread that opens
    the device."""

    _closed = False

    def __init__(self, target: Target, ordinal: int) -> None:
        self.target = target
        call("cuInit", 0)
        self._device = call("cuDeviceGet", ordinal)
        self._context = call("cuDevicePrimaryCtxRetain", self._device)
        call("cuCtxSetCurrent", self._context)
        self._own_stream = call("cuStreamCreate", bindings().CUstream_flags.CU_STREAM_NON_BLOCKING.value)
        self._stream = self._own_stream
        self._start, self._end = (call("cuEventCreate", 0) for _ in range(2))
        self._gate = _gate(self._stream)
        self._memory: set[CudaMemory] = set()

    @property
    def alignment(self) -> int:
        return ALIGNMENT

    @property
    def lost(self) -> bool:
        return CUDA.lost

    def allocate(self, size: int) -> CudaMemory:
        memory = CudaMemory(int(call("cuMemAlloc", max(size, 1))), size, owned=True)
        self._memory.add(memory)
        return memory

    def view(self, buffer: CudaMemory, offset: int, size: int) -> CudaMemory:
        if offset < 0 or offset + size > buffer.size:
            raise ValueError(f"bytes {offset} to {offset + size} of a buffer of {buffer.size}")
        return CudaMemory(buffer.address + offset, size, owned=False)

    def write(self, buffer: CudaMemory, data: Bytes, offset: int = 0) -> None:
        part = self.view(buffer, offset, data.nbytes)
        host = np.ascontiguousarray(data)
        if host.nbytes:
            call("cuMemcpyHtoDAsync", part.address, host.ctypes.data, host.nbytes, self._stream)
        self.synchronize()

    def read(self, buffer: CudaMemory, size: int, offset: int = 0) -> Bytes:
        part = self.view(buffer, offset, size)
        host = np.empty(size, dtype=np.uint8)
        if size:
            call("cuMemcpyDtoHAsync", host.ctypes.data, part.address, size, self._stream)
        self.synchronize()
        return host

    def copy(
        self, source: CudaMemory, target: CudaMemory, size: int, source_offset: int = 0, target_offset: int = 0
    ) -> None:
        from_part, to_part = self.view(source, source_offset, size), self.view(target, target_offset, size)
        if size:
            call("cuMemcpyDtoDAsync", to_part.address, from_part.address, size, self._stream)

    def load(self, binary: Binary) -> LoadedModule | CuBlas:
        if binary.language == BLAS:
            return CuBlas.load(binary.payload.decode())
        module = call("cuModuleLoadData", binary.payload)
        entries = [fact.entry for fact in binary.facts]
        kernels = {entry: CudaFunction(call("cuModuleGetFunction", module, entry.encode())) for entry in entries}
        return LoadedModule.of(module, kernels, Convention.of(binary.metadata))

    def prepare(
        self, plan: Plan, programs: Sequence[Any], operands: Mapping[str, CudaMemory], workspace: CudaMemory | None
    ) -> CudaPrepared:
        memory = dict(operands) | ({"": workspace} if workspace else {})
        addresses = {name: part.address for name, part in memory.items()}
        commands = [self._command(step, programs, addresses) for step in plan.steps]
        launches = [step for step in plan.steps if isinstance(step, Launch)]
        kernels: list[CudaFunction | BlasCallState] = [programs[step.module].kernels[step.entry] for step in launches]
        kernels += [programs[step.module].call_state(step) for step in plan.steps if isinstance(step, LibraryCall)]
        return CudaPrepared(commands, kernels, tuple(programs))

    def _command(self, step: Step, programs: Sequence[Any], addresses: Mapping[str, int]) -> Callable[[], object]:
        stream = int(self._stream)
        if isinstance(step, Launch):
            # The addresses are bound already, so that only the stream must be written at a launch.
            return partial(RepeatedLaunch(step, programs[step.module], addresses).enqueue, stream, step.grid[0])
        return partial(bound_step(step, programs, addresses), stream, addresses)

    def foreseen(self, step: LibraryCall, blas: CuBlas) -> LibraryPlan:
        """How the library would make a call, without making it. Raises LaunchError if it does not say."""
        CUDA.use()
        return blas.foreseen(step)

    def repeated(self, step: Launch, program: LoadedModule, workspace: CudaMemory | None) -> RepeatedLaunch:
        """A launch to repeat by `launch`, which must write the operands' addresses."""
        operands = {argument.name: 0 for argument in step.arguments if isinstance(argument, OperandArgument)}
        return RepeatedLaunch(step, program, operands | {"": workspace.address if workspace else 0})

    def launch(self, repeated: RepeatedLaunch, grid: int, numbers: Sequence[tuple[int, int]]) -> None:
        """Enqueue with `grid` work-groups in x. `numbers` are (parameter index, integer or address) pairs to write."""
        CUDA.use()
        repeated.enqueue(int(self._stream), grid, numbers)

    def repeated_plan(self, plan: Plan, programs: Sequence[Any], addresses: Mapping[str, int]) -> RepeatedPlan:
        """A plan to repeat on any stream and any memory of this device. `addresses` are the first ones."""
        return RepeatedPlan(self._context, plan, programs, addresses)

    def capturing(self) -> bool:
        """Whether the current stream is captured into a graph, so that nothing may be allocated or waited for."""
        return bool(int(call("cuStreamIsCapturing", self._stream)))

    def on(self, stream: int | None) -> AbstractContextManager[None]:
        """A context manager: inside, this device's context is current in the thread, and commands that are prepared use
        the caller's `stream`.

        `stream` is a handle (0 is the default stream), or None for the device's own stream. Nothing waits. Only one
        thread may use it at a time.
        """
        return _OnStream(self, self._own_stream if stream is None else bindings().CUstream(stream))

    def record(self, mark: Mark) -> None:
        """Set the mark after everything on the current stream."""
        call("cuEventRecord", mark.event, self._stream)

    def follow(self, mark: Mark) -> None:
        """Let the current stream wait for everything before the mark. The host does not wait."""
        call("cuStreamWaitEvent", self._stream, mark.event, 0)

    def time(self, executions: Sequence[Prepared]) -> float:
        """Seconds by events. The stream is held back until launches have queued up behind the first event, so that
        short kernels run back to back, not only as fast as the host launches them."""
        prepared = [execution for execution in executions if isinstance(execution, CudaPrepared)]
        gate = self._gate if self._gate and all(execution.launched for execution in prepared) else None
        held_back = 0
        if gate:
            gate.close(self._stream)
        try:
            call("cuEventRecord", self._start, self._stream)
            for execution in prepared:
                held_back += len(execution.commands)
                if gate and held_back > HELD_BACK:
                    gate.open()
                execution.enqueue()
            call("cuEventRecord", self._end, self._stream)
        finally:
            if gate:
                gate.open()
        call("cuEventSynchronize", self._end)
        return float(call("cuEventElapsedTime", self._start, self._end)) * 1e-3

    def synchronize(self) -> None:
        call("cuStreamSynchronize", self._stream)

    def release(self, *buffers: CudaMemory) -> None:
        if CUDA.lost:
            return  # the memory belongs to the parent process
        for buffer in buffers:
            if buffer in self._memory:
                self._memory.remove(buffer)
                call("cuMemFree", buffer.address)

    def close(self) -> None:
        """Free everything. After a sticky error the driver refuses, and the end of the process frees everything."""
        if CUDA.lost or self._closed:
            return
        self._closed = True  # the context is counted: giving it back twice would take it from another device here
        with contextlib.suppress(LaunchError):
            with self.on(None):  # another thread may have opened the device
                self.release(*tuple(self._memory))
                call("cuStreamDestroy", self._own_stream)
            call("cuDevicePrimaryCtxRelease", self._device)


class _OnStream:
    """`CudaDevice.on`. A class, which is fast to enter: every call of the library does."""

    __slots__ = ("_before", "_device", "_stream")

    def __init__(self, device: CudaDevice, stream: Any) -> None:
        self._device, self._stream = device, stream

    def __enter__(self) -> None:
        call("cuCtxPushCurrent", self._device._context)
        self._before, self._device._stream = self._device._stream, self._stream

    def __exit__(self, *error: object) -> None:
        self._device._stream = self._before
        call("cuCtxPopCurrent")


class Mark:
    """A point in the work of a stream, for which other streams can wait. Made within `CudaDevice.on`."""

    def __init__(self) -> None:
        self.event = call("cuEventCreate", bindings().CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        weakref.finalize(self, destroy_handle, "cuEventDestroy", self.event).atexit = False


@contextlib.contextmanager
def context_kept() -> Iterator[None]:
    """Restore the thread's current context after a device is opened: other libraries find their device by it."""
    call("cuInit", 0)
    before = call("cuCtxGetCurrent")
    try:
        yield
    finally:
        call("cuCtxSetCurrent", before)


def ordinal_of(address: int) -> int:
    """The number of the GPU that has this address. Raises LaunchError if no GPU has it."""
    call("cuInit", 0)
    attribute = bindings().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(call("cuPointerGetAttribute", attribute, address))


class Gate:
    """A word in host memory for which a stream waits. A closed gate holds back everything that is enqueued after it."""

    def __init__(self) -> None:
        host = call("cuMemHostAlloc", 4, bindings().CU_MEMHOSTALLOC_DEVICEMAP)
        self._word = ctypes.c_uint32.from_address(int(host))
        self._word.value = 0
        self._address = call("cuMemHostGetDevicePointer", host, 0)
        self._closed = 0

    def close(self, stream: Any) -> None:
        self._closed += 1
        at_least = bindings().CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ.value
        call("cuStreamWaitValue32", stream, self._address, self._closed, at_least)

    def open(self) -> None:
        self._word.value = self._closed


def _gate(stream: Any) -> Gate | None:
    """An open gate; None on a device whose streams cannot wait for memory."""
    try:
        gate = Gate()
        gate.close(stream)
        gate.open()
        call("cuStreamSynchronize", stream)
    except LaunchError as error:
        if error.poisoned:
            raise
        return None
    return gate
