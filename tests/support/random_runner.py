"""Fill arrays with the random kernels on the OpenCL device for tests, and say what must be in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray

from opencl_runner import opencl_device, programs
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.devices import Program
from tunesmith.kernels import KERNELS, Kernel
from tunesmith.problems import OPERATIONS
from tunesmith.problems.base import Expected
from tunesmith.problems.random import GENERATORS, GeneratorKind, RandomFill, random_type, scalars_for
from tunesmith.records import Configuration, Launch, Plan, Problem, ScalarArgument, Value
from verified import verify

FAMILY, OPERATION = KERNELS["OpenCLRandom"], OPERATIONS["Random"]
SEED = 0xFEDCBA98765432EF
"""Its halves differ, and adding one changes bits that LFSR113 looks at."""
GUARD, GUARD_BYTE = 256, 0xA5


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a launch: `block` work-items in each of `grid` work-groups."""

    block: int
    grid: int

    @property
    def engines(self) -> int:
        return self.block * self.grid

    @property
    def config(self) -> Configuration:
        return Configuration({"KernelLanguage": "OpenCL", "BlockSize": self.block, "GridSize": self.grid})

    def reasons(self, generator: str) -> list[str]:
        """Why the family rejects it on the device for tests."""
        problem_type = random_type(generator, dynamic=True)
        found = FAMILY.rejections(self.config, problem_type, opencl_device().target)
        return [rejection.reason for rejection in found]


def small(generator: str) -> Shape:
    """A launch that a generator always takes."""
    return Shape(GENERATORS[generator].block or 64, 2 if GENERATORS[generator].block else 4)


def problem(
    generator: str,
    distribution: str = "uniform",
    value_type: str = "float",
    count: int = 1000,
    *,
    dimensions: int = 3,
    engines: int | None = None,
    **scalars: Value,
) -> Problem:
    """Dynamic ordering; for `engines` engines, of a generator that has some, and in `dimensions` if it gives points."""
    chosen = scalars_for(distribution, seed=SEED, mean=0.75, stddev=1.5) | scalars
    kind = GENERATORS[generator].kind
    if kind is GeneratorKind.ENGINE:
        chosen |= {"engines": engines or small(generator).engines}
    sizes = (count, dimensions) if kind is GeneratorKind.QUASI else (count,)
    return Problem(random_type(generator, distribution, value_type, dynamic=True), sizes, scalars=chosen)


def loaded(asked: Problem, shape: Shape, family: Kernel = FAMILY) -> list[Program]:
    return programs(family, shape.config, asked.type, opencl_device().target)


def fill(asked: Problem, shape: Shape, at: int = 0, calls: int = 1, family: Kernel = FAMILY) -> NDArray[np.generic]:
    """The values, written to element `at` behind an aligned address; all around must stay as it was.

    With `calls` above 1, the plan is carried out so many times after one setup, into one place after the other.
    """
    device, random_fill = opencl_device(), RandomFill.of(asked)
    total, size = random_fill.count * random_fill.dimensions, np.dtype(random_fill.dtype).itemsize
    storage = np.full(2 * GUARD + (at + max(calls * total, 1)) * size + GUARD, GUARD_BYTE, np.uint8)
    first = GUARD + -storage.ctypes.data % GUARD + at * size
    plan = family.plan(shape.config, asked, device.target)
    made = loaded(asked, shape, family)
    workspace = device.allocate(plan.workspace_bytes)
    buffers = [workspace]
    device.prepare(plan.preparation, made, {}, workspace).enqueue()
    for call in range(calls):
        begin = first + call * total * size
        out = device.wrap(storage[begin : begin + max(total, 1) * size].view(random_fill.dtype))
        if out is None:
            pytest.skip(f"{device.target.name} does not work on host arrays")
        device.prepare(plan, made, {"Out": out}, workspace).enqueue()
        buffers.append(out)
    device.synchronize()
    device.release(*buffers)
    inside = slice(first, first + calls * total * size)
    values = storage[inside].copy().view(random_fill.dtype)
    storage[inside] = GUARD_BYTE
    assert (storage == GUARD_BYTE).all(), "written outside the output"
    return values


@lru_cache(maxsize=1)
def _expected(asked: Problem) -> Expected:
    """Several tests compare more than one launch with the same numbers, one launch after the other."""
    return OPERATION.reference(asked, {})["Out"]


def mistakes(asked: Problem, values: NDArray[np.generic]) -> list[str]:
    """What differs from the reference; it covers all values of up to 2048 vectors, and samples more."""
    expected = _expected(asked)
    got = values[expected.where]
    is_exact = expected.value.dtype.kind == "u"
    with np.errstate(invalid="ignore"):
        off = got != expected.value if is_exact else ~(np.abs(got - expected.value) <= expected.bound)
    places = np.flatnonzero(off)[:3]
    return [f"[{expected.where[0][i]}] is {got[i]}, expected {expected.value[i]}" for i in places]


def verified(
    asked: Problem,
    shape: Shape,
    planned: Callable[[Problem], Problem] = lambda check: check,
    patched: Callable[[Plan], Plan] = lambda plan: plan,
    family: Kernel = FAMILY,
) -> list[str]:
    """What the checks of a tuning run find, in plans that may be those of another problem, or changed."""
    device = opencl_device()
    found = []
    for check in family.checks(shape.config, asked, ()):
        case = VerificationCase(OPERATION.operands(check), {}, OPERATION.reference(check, {}))
        plan = patched(family.plan(shape.config, planned(check), device.target))
        wrong = verify(device, loaded(asked, shape, family), plan, case)
        found += [f"{wrong.reason}: {wrong.detail}"] if wrong else []
    return found


def with_scalar(plan: Plan, index: int, change: Callable[[float], float]) -> Plan:
    """The plan with another scalar as argument number `index` of its launch."""
    (launch,) = plan.steps
    assert isinstance(launch, Launch)
    scalar = launch.arguments[index]
    assert isinstance(scalar, ScalarArgument)
    changed = (*launch.arguments[:index], replace(scalar, value=change(scalar.value)), *launch.arguments[index + 1 :])
    return replace(plan, steps=(replace(launch, arguments=changed),))
