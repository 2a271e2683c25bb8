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
"""OpenBLAS's threads spin for some 30 ms after their last call before they sleep; kernels must not meet them there."""

Addresses = dict[str, int]


@dataclass(slots=True)
class OpenCLMemory:
    """A buffer, or a part of one: OpenCL makes parts of whole buffers only, so a part remembers its `root`.

    Where it is a host array's memory: `host_bytes` is how much of it the host reads once it is released, and `address`
    the array's first byte.
    """

    handle: Any
    root: Any
    offset: int = 0
    host_bytes: int = 0
    address: int = 0


class HostWork:
    """Carries out plans of BLAS calls between the device's commands. The device's queue is empty meanwhile.

    OpenCL shows a buffer to the host while it is mapped. `stays` says that a buffer of this driver always lies at one
    address, so that it is mapped once, to learn it, and not for every call.
    """

    def __init__(self, queue: Any, stays: bool) -> None:
        self.queue, self.stays = queue, stays
        self._ended = -SPINNING_SECONDS

    def prepare(self, plan: Plan, programs: Sequence[HostBlas], operands: Mapping[str, OpenCLMemory]) -> HostPrepared:
        """Raises LaunchError for a plan that has other steps as well."""
        calls = [step for step in plan.steps if isinstance(step, LibraryCall)]
        if len(calls) < len(plan.steps):
            raise LaunchError("invalid plan", "calls of the host's BLAS and commands of the device do not mix")
        return HostPrepared(self, calls, programs, operands)

    def time(self, executions: Sequence[HostPrepared]) -> float:
        """Seconds by the host's clock from the first call to the end of the last: no command of the device is timed."""
        OPENCL.use()
        self.queue.finish()
        with self._shown(executions):
            calls = [call for execution in executions for call in execution.calls]
            began = time.perf_counter()
            for call in calls:
                call()
            self._ended = time.perf_counter()
        return self._ended - began

    def settle(self) -> None:
        """Before a kernel is timed: wait until BLAS's threads sleep, if they may be awake."""
        if (left := self._ended + SPINNING_SECONDS - time.perf_counter()) > 0:
            time.sleep(left)

    @contextmanager
    def _shown(self, executions: Sequence[HostPrepared]) -> Iterator[None]:
        """Every operand mapped, once however many executions share it."""
        maps: dict[int, Any] = {}
        try:
            for execution in executions:
                execution.show(lambda memory: self._address(memory, maps))
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
    """BLAS calls bound to memory: `calls` are made while it is shown. The work is done when `enqueue` returns."""

    def __init__(
        self,
        work: HostWork,
        calls: Sequence[LibraryCall],
        programs: Sequence[HostBlas],
        memory: Mapping[str, OpenCLMemory],
    ) -> None:
        self._work, self._memory = work, memory
        self._bind = [(programs[call.module], call) for call in calls]
        self._addresses: Addresses = {}
        self.calls: list[Callable[[], object]] = []

    def enqueue(self) -> None:
        self._work.time([self])

    def show(self, address_of: Callable[[OpenCLMemory], int]) -> None:
        """Learn where the operands lie now, unless they stay where they were."""
        if self._addresses and self._work.stays:
            return
        stays = self._work.stays
        found = {name: (stays and one.address) or address_of(one) for name, one in self._memory.items()}
        if found != self._addresses:
            self._addresses = found
            self.calls = [made for blas, call in self._bind for made in blas.calls(call, found)]
