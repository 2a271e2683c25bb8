"""Run a kernel's plan on the OpenCL device for tests, between guard bands, and check every element it may touch."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tunesmith.devices import Device, Program, discover, open_device
from tunesmith.kernels import Kernel
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import strided
from tunesmith.records import Configuration, Module, Problem, ProblemType, Target
from tunesmith.toolchains import TOOLCHAINS

GUARD = 4096
"""Bytes before and behind every buffer; a multiple of any device's alignment."""
GUARD_BYTE, UNWRITTEN_BYTE = 0xA5, 0xFF  # 0xFF... is NaN


@cache
def opencl_device() -> Device:
    found = [device for device in discover("OpenCL:", check=False) if device.target and device.usable]
    if not found:
        pytest.skip("no OpenCL device here")
    return open_device(found[0].target)


@cache
def programs(kernel: Kernel, config: Configuration, problem_type: ProblemType, target: Target) -> list[Program]:
    """Configurations share a program if they differ only in what acts at launch."""
    return [program(module, target) for module in kernel.modules(config, problem_type)]


@cache
def program(module: Module, target: Target) -> Program:
    return opencl_device().load(TOOLCHAINS[module.language].compile(module, target))


class _Unoptimised:
    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        made = super().modules(config, problem_type)  # type: ignore[misc]
        return tuple(replace(module, options=(*module.options, "-cl-opt-disable")) for module in made)


def unoptimised(kernel: Kernel) -> Kernel:
    """The family with programs that the driver does not optimise: PoCL compiles them three times as fast.

    What such a program computes and touches follows from the same source. Each file that uses this also has tests of
    the family as it is.
    """
    family = type(kernel)
    return type(f"Unoptimised{family.__name__}", (_Unoptimised, family), {})()  # type: ignore[no-any-return]


class Guarded:
    """A buffer between two guard bands, filled with `data`."""

    def __init__(self, data: np.ndarray) -> None:
        self.device, self.size = opencl_device(), data.nbytes
        self.behind = GUARD + self.size
        self.whole = self.device.allocate(self.behind + GUARD)
        band = np.full(GUARD, GUARD_BYTE, np.uint8)
        self.device.write(self.whole, np.concatenate([band, np.ascontiguousarray(data).view(np.uint8), band]))
        self.view = self.device.view(self.whole, GUARD, max(self.size, 1))

    def read(self) -> np.ndarray:
        everything = self.device.read(self.whole, self.behind + GUARD)
        bands = np.concatenate([everything[:GUARD], everything[self.behind :]])
        assert (bands == GUARD_BYTE).all(), "written outside the buffer"
        return everything[GUARD : self.behind]


def run(kernel: Kernel, config: Configuration, problem: Problem, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Carry out the plan and return D's storage; asserts that inputs and guard bands are untouched."""
    device = opencl_device()
    plan = kernel.plan(config, problem, device.target)
    d = next(o for o in OPERATIONS["GEMM"].operands(problem) if o.name == "D")
    filled = {"D": np.full(d.storage_elements * np.dtype(d.dtype).itemsize, UNWRITTEN_BYTE, np.uint8)} | inputs
    buffers = {name: Guarded(data) for name, data in filled.items()}
    # Whatever is not written in the workspace is NaN, so that reading it shows.
    workspace = Guarded(np.full(plan.workspace_bytes, UNWRITTEN_BYTE, np.uint8))
    bound = {name: buffer.view for name, buffer in buffers.items()}
    loaded = programs(kernel, config, problem.type, device.target)
    device.prepare(plan, loaded, bound, workspace.view).enqueue()
    device.synchronize()
    workspace.read()
    for name, data in inputs.items():
        assert buffers[name].read().tobytes() == data.tobytes(), f"{name} was written"
    return buffers["D"].read().view(d.dtype)


def verify(kernel: Kernel, config: Configuration, problem: Problem, seed: int = 0) -> np.ndarray:
    """Run and compare with the operation's reference; padding must keep its bytes. Returns D's storage."""
    operation = OPERATIONS["GEMM"]
    inputs = operation.inputs(problem, np.random.default_rng(seed))
    storage = run(kernel, config, problem, inputs)
    d = next(o for o in operation.operands(problem) if o.name == "D")
    expected = operation.reference(problem, inputs)["D"]
    error = np.abs(strided(d, storage).astype(np.float64)[expected.where] - expected.value)
    assert (error <= expected.bound).all(), f"{config} on {problem}: worst {np.nanmax(error):.3g}"
    belongs = np.zeros(storage.size, bool)
    strided(d, belongs, writeable=True)[...] = True
    padding = storage[~belongs].view(np.uint8)
    assert (padding == UNWRITTEN_BYTE).all(), "written between the columns"
    return storage
