"""Times of the vendor's library alone, of many products in little time.

A tuning measures all solutions and checks every result, some three quarters of a second for a product on an H200. The
library's time is the hardest to expect, and needs neither: any numbers do as operands, and its results are not judged
here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from tunesmith.bench.device_runner import Rotation
from tunesmith.bench.job import Policy
from tunesmith.bench.operand_sets import OperandSets, repeat, set_count, storage_bytes
from tunesmith.bench.timing import time_plan
from tunesmith.bench.verification.poison import itemsize
from tunesmith.devices import Buffer, Device, LaunchError
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library.launch._launcher import Launcher
from tunesmith.problems import OPERATIONS, Array
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Operand, Problem

from .settled import NOISE, SAMPLING_SECONDS, WARM_UP_SECONDS

POLICY = Policy(noise=NOISE, sampling_seconds=SAMPLING_SECONDS, warm_up_seconds=WARM_UP_SECONDS)
"""That of settled tuning files, so that times of both teach the same."""
LARGEST_SIDE = 256
"""The numbers of an operand are those of one matrix whose sides are at most this, again and again."""


def library_seconds(device: Device, launcher: Launcher, problem: Problem) -> float | None:
    """The seconds of the library's call on the launcher's device, with sums as loose as torch's. None if the library
    does not compute the problem here, or fails at it.

    Raises LaunchError if the device cannot be used any more.
    """
    ready = launcher.by_vendor(problem, {}, aligned=True)
    if not ready:
        return None
    plan, programs = KERNELS[VENDOR].timed(ready.launched.plan), ready.compiled.programs
    try:
        with operands_of(device, problem) as sets, _workspace(device, plan.workspace_bytes) as workspace:
            sampler = Rotation(device, sets, lambda operands: device.prepare(plan, programs, operands, workspace))
            return time_plan(sampler, POLICY, math.inf, time.perf_counter).estimate.seconds
    except LaunchError as error:
        if error.poisoned:
            raise
        return None


@contextmanager
def operands_of(device: Device, problem: Problem) -> Iterator[list[dict[str, Buffer]]]:
    """Sets of a problem's operands by their names, so many that no cache holds the next one."""
    operation = OPERATIONS[problem.type.operation]
    batch = problem.type.indices.index("Batch") if "Batch" in problem.type.indices else None
    sides = (1 if index == batch else min(size, LARGEST_SIDE) for index, size in enumerate(problem.sizes))
    contents = operation.inputs(Problem(problem.type, tuple(sides)), np.random.default_rng(POLICY.seed))
    unread = () if Gemm.of(problem).beta else ("C",)
    operands = operation.operands(problem)
    put = {
        operand.name: partial(_fill, device, operand, contents[operand.name])
        for operand in operands
        if operand.name in contents and operand.name not in unread
    }
    set_bytes = sum(storage_bytes(operand, device.alignment) for operand in operands)
    count = set_count(set_bytes, operation.bytes(problem), device.target, POLICY.cold)
    operand_sets = OperandSets(device, operands, put, count)
    try:
        yield operand_sets.sets
    finally:
        operand_sets.release()


def _fill(device: Device, operand: Operand, content: Array, buffer: Buffer) -> None:
    size = operand.storage_elements * itemsize(operand.dtype)
    first = np.ascontiguousarray(content).view(np.uint8).reshape(-1)[:size]
    device.write(buffer, first)
    repeat(device, buffer, len(first), size)


@contextmanager
def _workspace(device: Device, size: int) -> Iterator[Buffer | None]:
    workspace = device.allocate(size) if size else None
    try:
        yield workspace
    finally:
        if workspace is not None:
            device.release(workspace)
