"""Carries out plans on arrays of the host, and measures what one such launch costs the host."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tunesmith.devices import Buffer, Device, Prepared, Program
from tunesmith.library.arrays._libraries import Array
from tunesmith.records import Launch, Module, OperandArgument, Plan

from ._memory import Pool, lent

WORKSPACE = ""
"""The workspace's name among a plan's memory."""

NOTHING = Module(
    "OpenCL",
    "__kernel void nothing(__global const float *a, __global const float *b, __global float *d) {}",
    ("nothing",),
)
"""A kernel with a product's operands that does nothing."""

NAMES = ("A", "B", "D")
LAUNCHES = 30
"""Launches of the kernel that does nothing; their median is a launch's cost."""


AGAIN = 16
"""The most sets of addresses to which a plan stays bound."""

Addresses = tuple[int, ...]


class HostOperand(NamedTuple):
    """An operand of the host: its name, the address of its first element, its bytes, and whether it is written."""

    name: str
    address: int
    size: int
    written: bool


@dataclass(slots=True)
class BoundPlan:
    """A plan with its programs. `prepared` is bound to the pool's buffers of that `generation`, and `again` to the
    host's memory at some addresses, the latest ones last."""

    plan: Plan
    programs: tuple[Program, ...]
    prepared: Prepared | None = None
    generation: int = -1
    again: dict[Addresses, Prepared] = field(default_factory=dict)


class HostLaunches:
    """Launches on arrays of the host, by one device. Not thread-safe."""

    def __init__(self, device: Device) -> None:
        self._device, self._pool = device, Pool(device)

    def run(
        self, bound: BoundPlan, arrays: Mapping[str, Array], roles: Mapping[str, str], stand_ins: Mapping[str, str]
    ) -> None:
        """Carry out a plan on arrays by operand name, and wait for it. The arguments are those of `Launcher.run`."""
        with lent(self._device, self._pool, arrays, roles) as buffers:
            self._prepared(bound, buffers, stand_ins).enqueue()

    def again(self, bound: BoundPlan, addresses: Addresses) -> bool:
        """Carry out a plan on memory at the same addresses as one of the last calls, and wait for it. This is most of
        what a program with loops does, and costs the host little more than the driver's own launch. False if no such
        call was made. Raises LaunchError."""
        prepared = bound.again.get(addresses)
        if prepared is None or bound.generation != self._pool.generation:
            return False
        prepared.enqueue()
        self._device.synchronize()
        return True

    def bind(
        self, bound: BoundPlan, addresses: Addresses, memory: Sequence[HostOperand], stand_ins: Mapping[str, str]
    ) -> bool:
        """Bind a plan to memory of the host, for `again`. False if the device does not work on the host's memory."""
        buffers = {}
        for operand in memory:
            buffer = self._device.lasting(operand.address, operand.size, operand.written)
            if buffer is None:
                return False
            buffers[operand.name] = buffer
        plan = bound.plan
        workspace = self._pool.at_least(WORKSPACE, plan.workspace_bytes) if plan.workspace_bytes else None
        if bound.generation != self._pool.generation:
            bound.again.clear()
            bound.prepared, bound.generation = None, self._pool.generation
        while len(bound.again) >= AGAIN:
            del bound.again[next(iter(bound.again))]
        operands = buffers | {name: buffers[other] for name, other in stand_ins.items()}
        bound.again[addresses] = self._device.prepare(plan, bound.programs, operands, workspace)
        return True

    def close(self) -> None:
        self._pool.close()

    def _prepared(self, bound: BoundPlan, buffers: Mapping[str, Buffer], stand_ins: Mapping[str, str]) -> Prepared:
        plan = bound.plan
        workspace = self._pool.at_least(WORKSPACE, plan.workspace_bytes) if plan.workspace_bytes else None
        reusable = all(buffer is self._pool.get(name) for name, buffer in buffers.items())
        if reusable and bound.prepared is not None and bound.generation == self._pool.generation:
            return bound.prepared
        operands = {**buffers, **{name: buffers[other] for name, other in stand_ins.items()}}
        prepared = self._device.prepare(plan.from_scratch, bound.programs, operands, workspace)
        if reusable:
            bound.again.clear()
            bound.prepared, bound.generation = prepared, self._pool.generation
        return prepared


def seconds_of_a_launch(launches: HostLaunches, program: Program) -> float:
    """The host's time for a launch on three arrays, in seconds: the median over LAUNCHES launches of a kernel that does
    nothing (`program` is NOTHING, compiled). Each launch has other arrays, as in a program without loops. The first
    launch, at which a driver may compile, does not count."""
    bound = _nothing(program)
    seconds = []
    for _ in range(LAUNCHES + 1):
        arrays, addresses, memory = _small_arrays()
        began = time.perf_counter()
        if launches.bind(bound, addresses, memory, {}):
            launches.again(bound, addresses)
        else:
            launches.run(bound, arrays, {"D": "out"}, {})
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[1:]))


def seconds_of_a_repeated_launch(launches: HostLaunches, program: Program) -> float:
    """The least of LAUNCHES launches on the same three arrays, in seconds; 0 if the device does not work on the host's
    memory. `program` is NOTHING, compiled."""
    bound = _nothing(program)
    _arrays, addresses, memory = _small_arrays()
    if not launches.bind(bound, addresses, memory, {}):
        return 0.0
    seconds = []
    for _ in range(LAUNCHES):
        began = time.perf_counter()
        launches.again(bound, addresses)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _nothing(program: Program) -> BoundPlan:
    arguments = tuple(OperandArgument(name) for name in NAMES)
    return BoundPlan(Plan((Launch(0, NOTHING.entries[0], (1, 1, 1), (1, 1, 1), arguments),)), (program,))


def _small_arrays() -> tuple[dict[str, Array], Addresses, list[HostOperand]]:
    """Three arrays of the host with their addresses."""
    arrays = {name: np.zeros(1, np.float32) for name in NAMES}
    addresses = tuple(x.ctypes.data for x in arrays.values())
    memory = [HostOperand(name, at, 4, name == "D") for name, at in zip(NAMES, addresses, strict=True)]
    return arrays, addresses, memory
