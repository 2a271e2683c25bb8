"""Big arrays repeat about a million random numbers, and no wrong program passes because of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench_jobs import GPU, KERNEL, OPERATION, TYPE, problem
from hosted_device import judged
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.devices.fake import FakeDevice
from tunesmith.problems import fill
from tunesmith.problems.fill import PERIODS, repeated
from tunesmith.toolchains.fake import FakeToolchain


def numbered(shape):
    """Contents that tell one element of a row from every other."""
    return np.arange(math.prod(shape), dtype=np.int32).reshape(shape)


def test_the_periods_are_primes():
    small = [p for p in range(2, 1025) if all(p % q for q in range(2, p))]
    assert len(set(PERIODS)) == 3
    assert all(1024 < period < 1024**2 and all(period % prime for prime in small) for period in PERIODS)


@pytest.mark.parametrize("shape", [(), (0,), (5, 0), (7,), (300, 200), (3, 4, 5), (PERIODS[0],)])
def test_a_small_array_is_as_drawn(shape):
    drawn = np.random.default_rng(3).random(shape)
    assert np.array_equal(repeated(shape, np.random.default_rng(3).random), drawn)


@pytest.mark.parametrize("shape", [(1500, 1024), (PERIODS[0] + 1,), (3, 700, 800), (2, PERIODS[0]), (3, 2, PERIODS[1])])
def test_a_large_array_has_its_shape_and_repeats_one_row(shape):
    asked = []

    def draw(shape):
        asked.append(shape)
        return numbered(shape)

    array = repeated(shape, draw)
    ((period,),) = asked
    assert array.shape == shape
    assert period in PERIODS
    assert np.array_equal(array.reshape(-1), np.arange(array.size) % period)


@pytest.mark.parametrize("shape", [(2048, 2048), (3, 1024, 1024), (5, PERIODS[0]), (2, 3, PERIODS[0]), (4, PERIODS[1])])
def test_what_is_off_by_an_element_a_row_a_tile_or_a_matrix_differs_everywhere(shape):
    array = repeated(shape, numbered)
    for axis, extent in enumerate(shape):
        for steps in {1, 2, 3, 8, 16, 64, 128, 256, extent - 1}:
            if 0 < steps < extent:
                ahead = np.moveaxis(array, axis, 0)
                assert (ahead[steps:] != ahead[:-steps]).all(), (axis, steps)


FAULTS = ["wrong value", "skip the last K", "index off by one", "unwritten element", "modify an input"]


@pytest.mark.parametrize("k", [64, 1000, 4096])
@pytest.mark.parametrize("fault", FAULTS)
def test_mutants_are_caught_on_repeated_inputs(fault, k, monkeypatch):
    """With periods so short that every operand holds its row many times."""
    monkeypatch.setattr(fill, "PERIODS", (1021, 1019, 1013))
    wrong = judged_on_repeated(problem(48, 48, k), fault)
    assert wrong is not None
    assert judged_on_repeated(problem(48, 48, k), "none") is None


@pytest.mark.parametrize("k", [64, 509])
def test_swapped_operands_are_caught_on_repeated_inputs(k, monkeypatch):
    monkeypatch.setattr(fill, "PERIODS", (1021, 1019, 1013))
    assert judged_on_repeated(problem(k, k, k), "swap operands").reason == "wrong value"


def judged_on_repeated(size, fault):
    random = np.random.default_rng(5)

    def draw(shape):
        return (random.choice((-1.0, 1.0), shape) * random.uniform(0.5, 1.0, shape)).astype(np.float32)

    operands = OPERATION.operands(size)
    inputs = {
        operand.name: repeated(operand.shape[::-1], draw).reshape(-1) for operand in operands if operand.role == "in"
    }
    case = VerificationCase(operands, inputs, OPERATION.reference(size, inputs))
    device, config = FakeDevice(GPU), KERNEL.space(TYPE).defaults | {"FakeFault": fault}
    (module,) = KERNEL.modules(config, TYPE)
    program = device.load(FakeToolchain().compile(module, GPU))
    return judged("host", device, [program], KERNEL.plan(config, size, GPU), case).wrong
