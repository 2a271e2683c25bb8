"""Plans that are carried out again and again, each time on a stream and on memory that are given then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tunesmith.records import GemmCall, Launch, Plan, Step, Write, Zero

from ._cublas import CuBlas
from ._cuda_driver import call
from ._cuda_program import Repeated

REMEMBERED_CALLS = 256
"""Streams and addresses for which a call of the vendor's BLAS is kept."""

Addresses = Mapping[str, int]
"""Of operands by name, "" being the workspace."""


class RepeatedPlan:
    """A plan with its parameters in place: carrying it out costs little more than the driver's launches.

    Its setup comes before its steps every time, since nobody knows what was done in the workspace meanwhile. Not for
    two threads at once.
    """

    def __init__(self, context: Any, plan: Plan, programs: Sequence[Any], addresses: Addresses) -> None:
        self._context = context
        self._steps = tuple(_repeated(step, programs, addresses) for step in (*plan.setup, *plan.steps))

    def enqueue(self, stream: int, addresses: Addresses) -> None:
        """Start the whole plan on a stream; returns at once. Raises LaunchError."""
        call("cuCtxPushCurrent", self._context)
        try:
            for step in self._steps:
                step(stream, addresses)
        finally:
            call("cuCtxPopCurrent")


def _repeated(step: Step, programs: Sequence[Any], addresses: Addresses) -> Callable[[int, Addresses], None]:
    match step:
        case Launch():
            return partial(_launch, Repeated(step, programs[step.module], addresses), step.grid[0])
        case GemmCall():
            return partial(_multiply, programs[step.module], step, {})
        case Zero():
            return partial(_zero, step)
        case Write():
            return partial(_write, step)


def _launch(repeated: Repeated, grid: int, stream: int, addresses: Addresses) -> None:
    repeated.move(addresses)
    repeated.enqueue(stream, grid)


def _multiply(
    blas: CuBlas, step: GemmCall, known: dict[tuple[int, ...], Callable[[], None]], stream: int, addresses: Addresses
) -> None:
    """A call with its arguments is remembered: making them takes longer than the call."""
    where = (stream, *addresses.values())
    bound = known.get(where)
    if bound is None:
        if len(known) >= REMEMBERED_CALLS:
            known.clear()
        bound = known[where] = blas.gemm(step, addresses, stream)
    bound()


def _zero(step: Zero, stream: int, addresses: Addresses) -> None:
    call("cuMemsetD8Async", addresses[step.operand] + step.offset, 0, step.size, stream)


def _write(step: Write, stream: int, addresses: Addresses) -> None:
    data = np.frombuffer(step.data, np.uint8)
    call("cuMemcpyHtoDAsync", addresses[""] + step.offset, data.ctypes.data, data.nbytes, stream)
