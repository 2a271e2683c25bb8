"""Times of the vendor's library alone, of many products in little time.

A tuning measures all solutions and checks every result, which takes half a second for a product. The library's time is
the hardest to expect, and needs neither: any numbers do as operands, and its results are not judged here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial

import numpy as np

from tunesmith.bench.device_runner import Rotation
from tunesmith.bench.job import Policy
from tunesmith.bench.operand_sets import OperandSetsCache
from tunesmith.bench.timing import time_plan
from tunesmith.bench.verification.poison import itemsize
from tunesmith.devices import Buffer, Device, LaunchError
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library.launch._launcher import Launcher
from tunesmith.problems import OPERATIONS, Array
from tunesmith.records import Operand, Problem

POLICY = Policy(noise=0.02, sampling_seconds=0.05, warm_up_seconds=0.02)
"""That of the tuning file which `tunesmith heuristics learn --file` writes, so that times of both teach the same."""
LARGEST_SIDE = 256
"""The numbers of an operand are those of a product whose sizes are at most this, again and again."""


class LibraryTimer:
    """Times the library on an opened device, whose memory for operands it keeps until `close`."""

    def __init__(self, device: Device, launcher: Launcher) -> None:
        self._device, self._launcher = device, launcher
        self._operand_sets = OperandSetsCache(device, POLICY.cold)

    def seconds(self, problem: Problem) -> float | None:
        """The seconds of the library's call, with sums as loose as torch's. None if it has none, or if it fails.

        Raises LaunchError if the device cannot be used any more.
        """
        ready = self._launcher.by_vendor(problem, {}, aligned=True)
        if not ready:
            return None
        plan, programs = KERNELS[VENDOR].timed(ready.launched.plan), ready.compiled.programs
        device, size = self._device, plan.workspace_bytes
        try:
            workspace = device.allocate(size) if size else None
            try:
                sets = self._operands(problem)
                sampler = Rotation(device, sets, lambda operands: device.prepare(plan, programs, operands, workspace))
                return time_plan(sampler, POLICY, math.inf, time.perf_counter).estimate.seconds
            finally:
                if workspace is not None:
                    device.release(workspace)
        except LaunchError as error:
            if error.poisoned:
                raise
            return None

    def close(self) -> None:
        self._operand_sets.clear()

    def _operands(self, problem: Problem) -> list[dict[str, Buffer]]:
        operation = OPERATIONS[problem.type.operation]
        small = Problem(problem.type, tuple(min(size, LARGEST_SIDE) for size in problem.sizes))
        contents: Mapping[str, Array] = operation.inputs(small, np.random.default_rng(POLICY.seed))
        operands = operation.operands(problem)
        put = {
            operand.name: partial(self._repeat, operand, contents[operand.name])
            for operand in operands
            if operand.name in contents
        }
        return self._operand_sets.get(problem, operands, operation.bytes(problem), put).sets

    def _repeat(self, operand: Operand, content: Array, buffer: Buffer) -> None:
        """Fill an operand's storage with the content again and again; each copy doubles what is there."""
        size = operand.storage_elements * itemsize(operand.dtype)
        first = np.ascontiguousarray(content).view(np.uint8).reshape(-1)[:size]
        self._device.write(buffer, first)
        done = len(first)
        while done < size:
            added = min(done, size - done)
            self._device.copy(buffer, buffer, added, target_offset=done)
            done += added
