"""Plans that are carried out again and again, each time on a stream and on memory that are given then."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunesmith.records import Launch, LibraryCall, Plan, Step, Write, Zero
from tunesmith.toolchains.forked import CUDA

from .driver import entry, refused
from .program import Repeated

Addresses = Mapping[str, int]
"""Of operands by name, "" being the workspace."""

Enqueue = Callable[[int, Addresses], None]
"""Starts a step on a stream, by its handle, and on memory."""

_POPPED = ctypes.byref(ctypes.c_void_p())
"""Where the driver may put the context that it takes off the thread's stack; nobody reads it."""


class RepeatedPlan:
    """A plan with its parameters in place: carrying it out costs little more than the driver's launches.

    Its preparation comes before its steps every time, since nobody knows what was done in the workspace meanwhile; who
    knows that it holds the zeros that the plan needs says so. Not for two threads at once.
    """

    def __init__(self, context: Any, plan: Plan, programs: Sequence[Any], addresses: Addresses) -> None:
        self._context = ctypes.c_void_p(int(context))
        self._push, self._pop = entry("cuCtxPushCurrent_v2"), entry("cuCtxPopCurrent_v2")
        self._steps = tuple(bound(step, programs, addresses) for step in plan.from_scratch.steps)
        self._on_zeros = self._steps[1:] if plan.zeroed else self._steps

    def enqueue(self, stream: int, addresses: Addresses, on_zeros: bool = False) -> None:
        """Start the whole plan on a stream; returns at once. Raises LaunchError, and UserError after a fork."""
        if CUDA.lost:
            raise CUDA.error()
        if status := self._push(self._context):
            raise refused("cuCtxPushCurrent", status)
        try:
            for step in self._on_zeros if on_zeros else self._steps:
                step(stream, addresses)
        finally:
            self._pop(_POPPED)


def bound(step: Step, programs: Sequence[Any], addresses: Addresses) -> Enqueue:
    """What starts a step; `addresses` are the first ones."""
    match step:
        case Launch():
            return Repeated(step, programs[step.module], addresses).enqueue_at
        case LibraryCall():
            enqueue: Enqueue = programs[step.module].repeated(step, addresses)
            return enqueue
        case Zero():
            return _fill("cuMemsetD8Async", step.operand, step.offset, ctypes.c_ubyte(0), step.size)
        case Write():
            return _fill("cuMemcpyHtoDAsync_v2", "", step.offset, ctypes.c_char_p(step.data), len(step.data))


def _fill(function: str, operand: str, offset: int, content: Any, size: int) -> Enqueue:
    """What has the driver fill memory: its arguments are made once, and of those the address and the stream change."""
    address, on, fill = ctypes.c_void_p(), ctypes.c_void_p(), entry(function)
    arguments = address, content, ctypes.c_size_t(size), on

    def enqueue(stream: int, addresses: Addresses) -> None:
        address.value, on.value = addresses[operand] + offset, stream
        if status := fill(*arguments):
            raise refused(function, status)

    return enqueue
