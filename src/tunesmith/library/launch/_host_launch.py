"""Carries out plans on arrays of the host, and measures what one such launch costs the host."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(slots=True)
class BoundPlan:
    """A plan with its programs. `prepared` is bound to the pool's buffers of that `generation`."""

    plan: Plan
    programs: tuple[Program, ...]
    prepared: Prepared | None = None
    generation: int = -1


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
            bound.prepared, bound.generation = prepared, self._pool.generation
        return prepared


def seconds_of_a_launch(launches: HostLaunches, program: Program) -> float:
    """The host's time for a launch on three arrays, in seconds: the median over LAUNCHES launches of a kernel that does
    nothing (`program` is NOTHING, compiled). The first launch, at which a driver may compile, does not count."""
    arguments = tuple(OperandArgument(name) for name in NAMES)
    bound = BoundPlan(Plan((Launch(0, NOTHING.entries[0], (1, 1, 1), (1, 1, 1), arguments),)), (program,))
    arrays = {name: np.zeros(1, np.float32) for name in NAMES}
    seconds = []
    for _ in range(LAUNCHES + 1):
        began = time.perf_counter()
        launches.run(bound, arrays, {"D": "out"}, {})
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])
