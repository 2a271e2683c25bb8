"""A plan's launches with their arguments: kernel objects that plans share, and the memory that each plan binds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyopencl as cl

from tunesmith.records import CompiledFacts, Launch, LocalArgument, OperandArgument, ScalarArgument, WorkspaceArgument

from ..base import Device, LaunchError
from .host import OpenCLMemory

KEPT_KERNELS = 64
"""Kernel objects that are kept for a program."""


class LoadedProgram:
    """A built program with the `facts` of its entries and a kernel object for each of its last launches.

    PyOpenCL takes 0.1 to 0.4 ms to make a kernel object, and 9 us to set a number, but only 0.1 us to set a buffer. So
    all plans with the same launch share an object that has the numbers, and each sets its buffers when it is launched.
    """

    def __init__(self, program: cl.Program, facts: Sequence[CompiledFacts]) -> None:
        self.program = program
        self.facts = {each.entry: each for each in facts}
        self._kernels: OrderedDict[Launch, LaunchedKernel] = OrderedDict()

    def kernel(self, launch: Launch) -> LaunchedKernel:
        """The kernel object of this launch. A plan that was prepared keeps its own, also if it is no longer kept."""
        kernel = self._kernels.pop(launch, None) or LaunchedKernel(self.program, launch)
        self._kernels[launch] = kernel
        if len(self._kernels) > KEPT_KERNELS:
            self._kernels.popitem(last=False)
        return kernel


class LaunchedKernel:
    """A kernel object with a launch's numbers and local memory. Threads may enqueue it at the same time."""

    def __init__(self, program: cl.Program, launch: Launch) -> None:
        self._kernel = cl.Kernel(program, launch.entry)
        self._lock = Lock()
        set_arg: Callable[[int, Any], None] = self._kernel.set_arg
        for index, argument in enumerate(launch.arguments):
            match argument:
                case OperandArgument() | WorkspaceArgument():
                    continue
                case ScalarArgument(value, dtype):
                    set_arg(index, np.dtype(dtype).type(value))
                case LocalArgument(size):
                    set_arg(index, cl.LocalMemory(size))
                case _:
                    raise LaunchError("invalid argument", f"OpenCL has no {type(argument).__name__}")

    def enqueue(
        self,
        queue: cl.CommandQueue,
        size: tuple[int, ...],
        work_group: tuple[int, ...],
        memory: Sequence[tuple[int, cl.Buffer]],
    ) -> cl.Event:
        """Launch `size` work-items with these buffers, each with the index of its argument."""
        with self._lock:
            for index, handle in memory:
                self._kernel.set_arg(index, handle)
            return cl.enqueue_nd_range_kernel(queue, self._kernel, size, work_group)


class Binding:
    """One plan's buffers. `used` keeps them alive, since OpenCL's arguments do not."""

    def __init__(self, device: Device, operands: Mapping[str, OpenCLMemory], workspace: OpenCLMemory | None) -> None:
        self._device, self._operands, self._workspace = device, operands, workspace
        self.used: list[cl.Buffer] = []

    def memory(self, launch: Launch) -> tuple[tuple[int, cl.Buffer], ...]:
        """The buffers of a launch's arguments, each with the argument's index."""
        bound: list[tuple[int, cl.Buffer]] = []
        for index, argument in enumerate(launch.arguments):
            match argument:
                case OperandArgument(name):
                    bound.append((index, self.operand(name)))
                case WorkspaceArgument(offset):
                    bound.append((index, self.workspace(offset)))
        return tuple(bound)

    def operand(self, name: str) -> cl.Buffer:
        return self._use(self._operands[name].handle)

    def workspace(self, offset: int) -> cl.Buffer:
        whole = self._workspace
        if whole is None:
            raise LaunchError("invalid argument", "the plan uses a workspace, but none was given")
        part = self._device.view(whole, offset, whole.handle.size - offset) if offset else whole
        return self._use(part.handle)

    def _use(self, handle: cl.Buffer) -> cl.Buffer:
        self.used.append(handle)
        return handle
