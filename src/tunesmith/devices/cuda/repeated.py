"""Plans to repeat, each time on another stream and other memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunesmith.records import Launch, LibraryCall, Plan, Step, Write, Zero
from tunesmith.toolchains.forked import CUDA

from .driver import driver_function, error_of_status
from .native import NativeStep
from .program import RepeatedLaunch

Addresses = Mapping[str, int]
"""Addresses of operands by name. The workspace's name is ""."""

Enqueue = Callable[[int, Addresses], None]
"""Starts a step on a stream, by its handle, and on these addresses."""

_POPPED = ctypes.byref(ctypes.c_void_p())
"""The driver writes the popped context here. Nobody reads it."""


class RepeatedPlan:
    """A plan whose parameters are kept, so that carrying it out costs little more than the driver's launches.

    The plan's preparation runs before its steps every time, since the workspace may have been used meanwhile. A caller
    who knows that the workspace still holds the plan's zeros says so. Only one thread may use it at a time.
    """

    def __init__(self, context: Any, plan: Plan, programs: Sequence[Any], addresses: Addresses) -> None:
        self._context = ctypes.c_void_p(int(context))
        self._push, self._pop = driver_function("cuCtxPushCurrent_v2"), driver_function("cuCtxPopCurrent_v2")
        self._steps = tuple(bound_step(step, programs, addresses) for step in plan.from_scratch.steps)
        self._on_zeros = self._steps[1:] if plan.zeroed else self._steps
        self._repeated = plan.from_scratch.steps[1:] if plan.zeroed else plan.from_scratch.steps
        self._programs, self._addresses = programs, addresses

    def enqueue(self, stream: int, addresses: Addresses, on_zeros: bool = False) -> None:
        """Start the whole plan on a stream and return at once. With `on_zeros`, the workspace is not zeroed again.

        Raises LaunchError, and UserError after a fork.
        """
        if CUDA.lost:
            raise CUDA.error()
        if status := self._push(self._context):
            raise error_of_status("cuCtxPushCurrent", status)
        try:
            for step in self._on_zeros if on_zeros else self._steps:
                step(stream, addresses)
        finally:
            self._pop(_POPPED)

    def native(self, slots: Mapping[str, int]) -> tuple[NativeStep, ...] | None:
        """The steps that run on a zeroed workspace, for `tunesmith_native`; None if it cannot take one of them. `slots`
        are those of operands by name."""
        steps: list[NativeStep] = []
        for step in self._repeated:
            match step:
                case Launch():
                    launch = RepeatedLaunch(step, self._programs[step.module], self._addresses)
                    steps.append(launch.native(slots))
                case LibraryCall():
                    described = self._programs[step.module].native(step, slots)
                    if described is None:
                        return None
                    steps += described
                case _:
                    return None
        return tuple(steps)

    @property
    def context(self) -> int:
        """The handle of the context in which the steps run."""
        return int(self._context.value or 0)


def bound_step(step: Step, programs: Sequence[Any], addresses: Addresses) -> Enqueue:
    """A function that starts a step. `addresses` are the first ones."""
    match step:
        case Launch():
            return RepeatedLaunch(step, programs[step.module], addresses).enqueue_at
        case LibraryCall():
            enqueue: Enqueue = programs[step.module].repeated(step, addresses)
            return enqueue
        case Zero():
            return _fill("cuMemsetD8Async", step.operand, step.offset, ctypes.c_ubyte(0), step.size)
        case Write():
            return _fill("cuMemcpyHtoDAsync_v2", "", step.offset, ctypes.c_char_p(step.data), len(step.data))


def _fill(function: str, operand: str, offset: int, content: Any, size: int) -> Enqueue:
    """A function that lets the driver fill memory. The arguments are kept; only address and stream change."""
    address, on_stream, fill = ctypes.c_void_p(), ctypes.c_void_p(), driver_function(function)
    arguments = address, content, ctypes.c_size_t(size), on_stream

    def enqueue(stream: int, addresses: Addresses) -> None:
        address.value, on_stream.value = addresses[operand] + offset, stream
        if status := fill(*arguments):
            raise error_of_status(function, status)

    return enqueue
