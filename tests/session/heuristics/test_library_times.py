"""How long the vendor's library takes, without a tuning."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cuda_runner import cuda_device
from opencl_runner import opencl_device
from tunesmith.devices import LaunchError
from tunesmith.kernels.vendor.blas import VendorBlas
from tunesmith.library.launch._launcher import Launcher
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem
from tunesmith.session.heuristics.library_times import LARGEST_SIDE, library_seconds, operands_of

KIND = gemm_type("s", transpose_b=False, use_beta=False)
BATCHED = gemm_type("s", transpose_b=False, use_beta=False, batched=True)


@pytest.fixture
def machine():
    device = opencl_device()
    launcher = Launcher(device, {}, {})
    yield device, launcher
    launcher.close()


def test_the_hosts_blas_is_timed(machine):
    small, large = (library_seconds(*machine, Problem(KIND, (side, side, side))) for side in (16, 700))
    assert 0 < small < large < 1


@pytest.mark.parametrize(("kind", "sizes"), [(KIND, (1000, 300, 500)), (BATCHED, (300, 30, 5, 400))])
def test_operands_have_the_numbers_of_a_small_matrix_again_and_again(machine, kind, sizes):
    device, _ = machine
    problem = Problem(kind, sizes)
    operands = {operand.name: operand for operand in OPERATIONS["GEMM"].operands(problem)}
    with operands_of(device, problem) as (first, *others):
        for operand in (operands["A"], operands["B"]):
            count = operand.storage_elements
            numbers = device.read(first[operand.name], 4 * count).view(np.float32)
            period = math.prod(min(side, LARGEST_SIDE) for side in operand.shape[:2])
            assert period < count
            np.testing.assert_array_equal(numbers, np.resize(numbers[:period], count))
            assert len(np.unique(numbers)) > 10
            assert np.isfinite(numbers).all()
            for other in others:
                np.testing.assert_array_equal(device.read(other[operand.name], 4 * count).view(np.float32), numbers)


def test_the_call_is_timed_as_it_ships(machine, monkeypatch):
    """On a GPU with loose sums, which a check would not let pass."""
    made, prepare = [], machine[0].prepare
    monkeypatch.setattr(VendorBlas, "timed", lambda blas, plan: made.append(replace(plan)) or made[-1])
    monkeypatch.setattr(machine[0], "prepare", lambda plan, *others: prepared.append(plan) or prepare(plan, *others))
    prepared = []
    assert library_seconds(*machine, Problem(KIND, (16, 16, 16)))
    assert len(made) == 1
    assert prepared
    assert all(plan is made[0] for plan in prepared)


def test_what_the_library_does_not_compute_has_no_time(machine):
    kind = gemm_type("b8", transpose_b=False, use_beta=False)
    assert library_seconds(*machine, Problem(kind, (16, 16, 16))) is None


@pytest.mark.parametrize("poisoned", [False, True])
def test_a_call_that_fails_has_no_time_unless_the_device_is_lost(machine, monkeypatch, poisoned):
    def fail(*arguments):
        raise LaunchError("not supported", "made up", poisoned=poisoned)

    device, _ = machine
    released, release = [], device.release
    monkeypatch.setattr(device, "time", fail)
    monkeypatch.setattr(device, "release", lambda *buffers: (released.extend(buffers), release(*buffers)))
    if poisoned:
        with pytest.raises(LaunchError, match="made up"):
            library_seconds(*machine, Problem(KIND, (16, 16, 16)))
    else:
        assert library_seconds(*machine, Problem(KIND, (16, 16, 16))) is None
    assert released


@pytest.mark.gpu
def test_cublas_takes_as_long_as_its_arithmetic_or_longer():
    device = cuda_device()
    launcher = Launcher(device, {}, {})
    kind = gemm_type("b", transpose_b=False, use_beta=False)
    half, whole = (library_seconds(device, launcher, Problem(kind, (8192, 4096, k))) for k in (4096, 8192))
    assert math.log(whole / half) == pytest.approx(math.log(2), abs=0.2)
    # An H200 has 989 TFLOP/s in bfloat16.
    assert 2 * 8192 * 4096 * 8192 / whole < 1e15
    launcher.close()
