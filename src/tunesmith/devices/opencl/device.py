"""OpenCL devices: finding them, and carrying out plans on one.

PoCL (3.1) reuses what another process built, in 50 ms instead of 0.5 to 20 s: a program by its preprocessed source,
options and device; a kernel's machine code by its work-group size and by whether every global size is below 65,536.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from tunesmith.records import (
    Binary,
    CompiledFacts,
    Launch,
    LibraryCall,
    LocalArgument,
    Module,
    Plan,
    Step,
    Target,
    UserError,
    Write,
    Zero,
)
from tunesmith.toolchains import CompileError
from tunesmith.toolchains.blas import LANGUAGE as BLAS
from tunesmith.toolchains.forked import OPENCL
from tunesmith.toolchains.opencl import build, completed, wait_until_running
from tunesmith.toolchains.opencl_devices import context, platforms

from ..api import Api, FoundDevice
from ..base import Bytes, Device, LaunchError, Prepared
from ..host_blas import HostBlas
from .binding import Binding, LoadedProgram
from .errors import LAUNCHING, WAITING
from .host import HostPrepared, HostWork, OpenCLMemory
from .target import describe


class OpenCL(Api):
    """Every device of every installed OpenCL platform; selectors are `OpenCL:platform:device`."""

    name = "OpenCL"
    languages = ("OpenCL", BLAS)
    trial = Module(
        "OpenCL",
        "__kernel void trial(__global int *out) { out[get_global_id(0)] = (int)get_global_id(0) + 1; }",
        ("trial",),
    )

    def find(self) -> tuple[FoundDevice, ...]:
        found: list[FoundDevice] = []
        for number, platform in enumerate(platforms()):
            try:
                devices = platform.get_devices()
            except cl.Error as error:
                found.append(
                    FoundDevice(platform.name, None, f"lists no devices: {error}", "update or remove its driver")
                )
                continue
            for index, device in enumerate(devices):
                found.append(_found(device, f"OpenCL:{number}:{index}"))
        return tuple(found) or (_NO_PLATFORM,)

    def open(self, target: Target) -> Device:
        try:
            return OpenCLDevice(target)
        except (LookupError, cl.Error) as error:
            raise UserError(
                target.selector, f"{target.name} cannot be opened: {error}", "`tunesmith devices` shows what is there"
            ) from error


class OpenCLDevice(Device):
    """One device with one in-order queue that records when commands start and end."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._context = context(target.selector)
        self._device = self._context.devices[0]
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(self._context, self._device, properties=profiling)
        self._running: set[_Prepared] = set()
        # PoCL's CPU driver only has the host's memory, so a wrapped array needs no map, which saves 0.1 ms a call.
        self._works_on_host_arrays = self._device.platform.name == "Portable Computing Language"
        self._host = HostWork(self._queue, stays=self._works_on_host_arrays)

    @property
    def lost(self) -> bool:
        return OPENCL.lost

    def allocate(self, size: int) -> OpenCLMemory:
        with LAUNCHING:
            handle = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(size, 1))
        return OpenCLMemory(handle, handle)

    def view(self, buffer: OpenCLMemory, offset: int, size: int) -> OpenCLMemory:
        start = buffer.offset + offset
        with LAUNCHING:
            return OpenCLMemory(buffer.root.get_sub_region(start, max(size, 1)), buffer.root, start)

    @property
    def alignment(self) -> int:
        return max(1, int(self._device.mem_base_addr_align) // 8)

    def write(self, buffer: OpenCLMemory, data: Bytes, offset: int = 0) -> None:
        if data.size:
            with WAITING:
                cl.enqueue_copy(self._queue, buffer.handle, data, dst_offset=offset)

    def read(self, buffer: OpenCLMemory, size: int, offset: int = 0) -> Bytes:
        data = np.empty(size, dtype=np.uint8)
        if size:
            with WAITING:
                cl.enqueue_copy(self._queue, data, buffer.handle, src_offset=offset)
            self._running.clear()
        return data

    def copy(
        self, source: OpenCLMemory, target: OpenCLMemory, size: int, source_offset: int = 0, target_offset: int = 0
    ) -> None:
        src, dst = source.offset + source_offset, target.offset + target_offset
        if size:
            with LAUNCHING:
                cl.enqueue_copy(self._queue, target.root, source.root, byte_count=size, src_offset=src, dst_offset=dst)

    def wrap(self, array: NDArray[Any]) -> OpenCLMemory | None:
        """None on a GPU, and for an array that is empty, not contiguous or not aligned to its elements."""
        flags, writeable = array.flags, array.flags.writeable
        if self.target.kind != "CPU" or not (flags.c_contiguous and flags.aligned and array.nbytes):
            return None
        access = cl.mem_flags.READ_WRITE if writeable else cl.mem_flags.READ_ONLY
        with LAUNCHING:
            handle = cl.Buffer(self._context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=array)
        host_bytes = 0 if self._works_on_host_arrays or not writeable else array.nbytes
        return OpenCLMemory(handle, handle, host_bytes=host_bytes, address=array.ctypes.data)

    def lasting(self, address: int, size: int, writeable: bool) -> OpenCLMemory | None:
        """Only PoCL on a CPU: for its kernels a wrapped array is nothing but an address."""
        if self.target.kind != "CPU" or not self._works_on_host_arrays:
            return None
        access = cl.mem_flags.READ_WRITE if writeable else cl.mem_flags.READ_ONLY
        memory = (ctypes.c_uint8 * size).from_address(address)
        with LAUNCHING:
            handle = cl.Buffer(self._context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=memory)
        return OpenCLMemory(handle, handle, address=address)

    def load(self, binary: Binary) -> LoadedProgram | HostBlas:
        OPENCL.use()
        if binary.language == BLAS:
            return HostBlas.of_scipy()
        try:
            program = build(self._context, binary.payload)
        except CompileError as error:
            raise LaunchError("program does not load", error.log) from error
        return LoadedProgram(program, binary.facts)

    def completed(self, binary: Binary, program: Any) -> Binary:
        return binary if binary.language == BLAS else completed(binary, program.program)

    def prepare(
        self, plan: Plan, programs: Sequence[Any], operands: Mapping[str, OpenCLMemory], workspace: OpenCLMemory | None
    ) -> Prepared:
        if any(isinstance(step, LibraryCall) for step in plan.steps):
            return self._host.prepare(plan, programs, operands)
        binding = Binding(self, operands, workspace)
        with LAUNCHING:
            commands = tuple(self._command(step, programs, binding) for step in plan.steps)
        return _Prepared(commands, binding.used, self._running)

    def time(self, executions: Sequence[Prepared]) -> float:
        if host_calls := [execution for execution in executions if isinstance(execution, HostPrepared)]:
            return self._host.time(host_calls)
        self._host.settle()
        with LAUNCHING:
            prepared = (execution for execution in executions if isinstance(execution, _Prepared))
            events = [command() for execution in prepared for command in execution.commands]
        if not events:
            return 0.0
        with WAITING:
            events[-1].wait()
            return float(events[-1].profile.end - events[0].profile.start) * 1e-9

    def run(self, prepared: Prepared, running: Callable[[bool], None]) -> None:
        """Run command by command: PoCL compiles a kernel for its work-group size while its event says `submitted`."""
        if not isinstance(prepared, _Prepared):
            super().run(prepared, running)
            return
        for command in prepared.commands:
            with LAUNCHING:
                event = command()
                self._queue.flush()
            with WAITING:
                wait_until_running(event)
                running(True)
                self._queue.finish()
            running(False)

    def synchronize(self) -> None:
        with WAITING:
            self._queue.finish()
        self._running.clear()

    def release(self, *buffers: OpenCLMemory) -> None:
        if OPENCL.lost:
            return  # the memory belongs to the parent process
        # PoCL 3.1 ends the process if a buffer is released before the commands that use it have run.
        self._settle()
        for buffer in buffers:
            with suppress(cl.Error):
                if buffer.host_bytes:
                    self._show_host(buffer)
                buffer.handle.release()

    def _show_host(self, buffer: OpenCLMemory) -> None:
        """Map a host array, since a driver may keep the array's content in a copy of its own until then."""
        shape, element = (buffer.host_bytes,), np.dtype(np.uint8)
        mapped, _ = cl.enqueue_map_buffer(self._queue, buffer.handle, cl.map_flags.READ, 0, shape, element)
        mapped.base.release(self._queue)
        self._queue.finish()

    def close(self) -> None:
        self._settle()

    def _settle(self) -> None:
        if OPENCL.lost:
            return
        with suppress(cl.Error):
            self._queue.finish()
        self._running.clear()

    def _command(self, step: Step, programs: Sequence[Any], binding: Binding) -> Callable[[], Any]:
        if isinstance(step, Zero):
            handle = binding.operand(step.operand) if step.operand else binding.workspace(0)
            return partial(cl.enqueue_fill_buffer, self._queue, handle, _ZERO, step.offset, step.size)
        if isinstance(step, Write):
            data = np.frombuffer(step.data, np.uint8)
            return partial(cl.enqueue_copy, self._queue, binding.workspace(0), data, dst_offset=step.offset)
        assert isinstance(step, Launch), "a LibraryCall is the host's"
        loaded = programs[step.module]
        self._check(step, loaded.facts.get(step.entry))
        size = tuple(groups * items for groups, items in zip(step.grid, step.work_group, strict=True))
        return partial(loaded.kernel(step).enqueue, self._queue, size, step.work_group, binding.memory(step))

    def _check(self, launch: Launch, facts: CompiledFacts | None) -> None:
        """Check limits that not all drivers check: PoCL ends the process if local memory does not suffice."""
        local = sum(argument.size for argument in launch.arguments if isinstance(argument, LocalArgument))
        local += (facts.local_bytes or 0) if facts else 0
        if local > self.target.local_memory_bytes:
            raise LaunchError("local memory", f"{local} bytes, the device has {self.target.local_memory_bytes}")
        limit = (facts.max_work_group_size if facts else None) or self.target.max_work_group_size
        if prod(launch.work_group) > limit:
            raise LaunchError("invalid work-group size", f"{launch.work_group}: the program allows {limit} work-items")


class _Prepared(Prepared):
    """Commands ready to be enqueued; each returns its event. `running` keeps the plan alive until the device waited."""

    def __init__(
        self, commands: tuple[Callable[[], Any], ...], used: Sequence[cl.Buffer], running: set[_Prepared]
    ) -> None:
        self.commands = commands
        self._used, self._running = used, running

    def enqueue(self) -> None:
        self._running.add(self)
        with LAUNCHING:
            for command in self.commands:
                command()


def _found(device: Any, selector: str) -> FoundDevice:
    try:
        target = describe(device, selector)
        is_usable = device.available and device.compiler_available
    except cl.Error as error:
        return FoundDevice(selector, None, f"does not describe itself: {error}", "update or remove its driver")
    problem, remedy = ("", "") if is_usable else ("is not available, or has no compiler", "update its driver")
    return FoundDevice(target.name, target, problem, remedy)


_ZERO = np.zeros(1, dtype=np.uint8)
_NO_PLATFORM = FoundDevice(
    *("OpenCL", None, "no OpenCL driver is installed"),
    "install one: `sh scripts/ensure_opencl`, or Debian's package pocl-opencl-icd, or your GPU's driver",
)
