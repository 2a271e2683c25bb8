"""Calls of the host's BLAS on the memory of an OpenCL device that is the host's CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from tunesmith.records import LibraryCall, Plan
from tunesmith.toolchains.forked import OPENCL

from ..base import LaunchError, Prepared
from ..host_blas import HostBlas

SPINNING_SECONDS = 0.08
"""OpenBLAS's threads spin for some 30 ms after their last call before they sleep, which would disturb kernels."""

Addresses = dict[str, int]


@dataclass(slots=True)
class OpenCLMemory:
    """A buffer, or a part of a buffer. OpenCL makes parts of whole buffers only, so a part keeps its `root`.

    For a host array's memory, `address` is the array's first byte, and `host_bytes` is how many bytes the host may read
    after the release.
    """

    handle: Any
    root: Any
    offset: int = 0
    host_bytes: int = 0
    address: int = 0


class HostWork:
    """Carries out plans of BLAS calls while the device's queue is empty.

    A host may access a buffer while it is mapped. `stays` says that this driver's buffers never change their host
    address, so that a buffer is mapped once, to find the address, and not for every call.
    """

    def __init__(self, queue: Any, stays: bool) -> None:
        self.queue, self.stays = queue, stays
        self._ended = -SPINNING_SECONDS

    def prepare(self, plan: Plan, programs: Sequence[HostBlas], operands: Mapping[str, OpenCLMemory]) -> HostPrepared:
        """Raises LaunchError for a plan that also has other steps."""
        calls = [step for step in plan.steps if isinstance(step, LibraryCall)]
        if len(calls) < len(plan.steps):
            raise LaunchError("invalid plan", "calls of the host's BLAS and commands of the device do not mix")
        return HostPrepared(self, calls, programs, operands)

    def time(self, executions: Sequence[HostPrepared]) -> float:
        """Seconds by the host's clock from the start of the first call to the end of the last."""
        OPENCL.use()
        self.queue.finish()
        with self._mapped(executions):
            calls = [call for execution in executions for call in execution.calls]
            began = time.perf_counter()
            for call in calls:
                call()
            self._ended = time.perf_counter()
        return self._ended - began

    def settle(self) -> None:
        """Wait until BLAS's threads sleep. Call this before a kernel is timed."""
        if (left := self._ended + SPINNING_SECONDS - time.perf_counter()) > 0:
            time.sleep(left)

    @contextmanager
    def _mapped(self, executions: Sequence[HostPrepared]) -> Iterator[None]:
        """Map every operand, once even if several executions share it."""
        maps: dict[int, Any] = {}
        try:
            for execution in executions:
                execution.bind(lambda memory: self._address(memory, maps))
            yield
        finally:
            for mapped in maps.values():
                mapped.base.release(self.queue)
            if maps:
                self.queue.finish()

    def _address(self, memory: OpenCLMemory, maps: dict[int, Any]) -> int:
        handle = memory.handle
        if handle.int_ptr not in maps:
            read_only = handle.get_info(cl.mem_info.FLAGS) & cl.mem_flags.READ_ONLY
            access: Any = cl.map_flags.READ if read_only else cl.map_flags.READ | cl.map_flags.WRITE
            mapped, _ = cl.enqueue_map_buffer(self.queue, handle, access, 0, (handle.size,), np.dtype(np.uint8))
            maps[handle.int_ptr] = mapped
        return int(maps[handle.int_ptr].ctypes.data)


class HostPrepared(Prepared):
    """BLAS calls bound to memory, which must be mapped when `calls` run. The work is done when `enqueue` returns."""

    def __init__(
        self,
        work: HostWork,
        calls: Sequence[LibraryCall],
        programs: Sequence[HostBlas],
        memory: Mapping[str, OpenCLMemory],
    ) -> None:
        self._work, self._memory = work, memory
        self._blas_calls = [(programs[call.module], call) for call in calls]
        self._addresses: Addresses = {}
        self.calls: list[Callable[[], object]] = []

    def enqueue(self) -> None:
        self._work.time([self])

    def bind(self, address_of: Callable[[OpenCLMemory], int]) -> None:
        """Bind the calls to the operands' present addresses, unless those cannot have changed."""
        stays = self._work.stays
        if self._addresses and stays:
            return
        addresses = {name: (stays and memory.address) or address_of(memory) for name, memory in self._memory.items()}
        if addresses != self._addresses:
            self._addresses = addresses
            self.calls = [function for blas, call in self._blas_calls for function in blas.calls(call, addresses)]
