"""How long the vendor's library takes, without a tuning."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from rich.console import Console

from cuda_runner import cuda_device
from opencl_runner import opencl_device
from tunesmith.devices import LaunchError
from tunesmith.library.launch._launcher import Launcher
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem
from tunesmith.report import CountReport
from tunesmith.session.heuristics.library_times import LARGEST_SIDE, LibraryTimer

KIND = gemm_type("s", transpose_b=False, use_beta=False)


def test_the_hosts_blas_is_timed():
    device = opencl_device()
    timer = LibraryTimer(device, Launcher(device, {}, {}))
    small, large = (timer.seconds(Problem(KIND, (side, side, side))) for side in (16, 700))
    assert 0 < small < large < 1
    timer.close()


def test_operands_have_the_numbers_of_a_small_product_again_and_again():
    device = opencl_device()
    timer = LibraryTimer(device, Launcher(device, {}, {}))
    problem = Problem(KIND, (1000, 300, 500))
    operands = {operand.name: operand for operand in OPERATIONS["GEMM"].operands(problem)}
    first, *others = timer._operands(problem)
    for operand in (operands["A"], operands["B"]):
        count = operand.storage_elements
        numbers = device.read(first[operand.name], 4 * count).view(np.float32)
        period = min(operand.shape[0], LARGEST_SIDE) * min(operand.shape[1], LARGEST_SIDE)
        assert period < count
        np.testing.assert_array_equal(numbers, np.resize(numbers[:period], count))
        assert len(np.unique(numbers)) > 10
        assert np.isfinite(numbers).all()
        for other in others:
            np.testing.assert_array_equal(device.read(other[operand.name], 4 * count).view(np.float32), numbers)
    timer.close()


def test_what_the_library_does_not_compute_has_no_time():
    device = opencl_device()
    timer = LibraryTimer(device, Launcher(device, {}, {}))
    assert timer.seconds(Problem(gemm_type("b8", transpose_b=False, use_beta=False), (16, 16, 16))) is None
    timer.close()


@pytest.mark.parametrize("poisoned", [False, True])
def test_a_call_that_fails_has_no_time_unless_the_device_is_lost(monkeypatch, poisoned):
    device = opencl_device()
    timer = LibraryTimer(device, Launcher(device, {}, {}))

    def fail(*arguments):
        raise LaunchError("not supported", "made up", poisoned=poisoned)

    monkeypatch.setattr(device, "time", fail)
    if poisoned:
        with pytest.raises(LaunchError, match="made up"):
            timer.seconds(Problem(KIND, (16, 16, 16)))
    else:
        assert timer.seconds(Problem(KIND, (16, 16, 16))) is None
    timer.close()


def test_progress_has_rate_and_time_left():
    text, now = io.StringIO(), [0.0]
    with CountReport(Console(file=text, width=200), "asking", clock=lambda: now[0]) as report:
        for number in range(1, 41):
            now[0] += 0.9
            report(number, 40)
    assert text.getvalue().splitlines() == ["asking, 1.1 a second: 23/40, 0:15 left"]
    silent = io.StringIO()
    with CountReport(Console(file=silent, width=200), "asking", quiet=True, clock=lambda: now[0]) as report:
        now[0] += 30
        report(1, 2)
    assert not silent.getvalue()


@pytest.mark.gpu
def test_cublas_takes_as_long_as_its_arithmetic_or_longer():
    device = cuda_device()
    timer = LibraryTimer(device, Launcher(device, {}, {}))
    kind = gemm_type("b", transpose_b=False, use_beta=False)
    half, whole = (timer.seconds(Problem(kind, (8192, 4096, k))) for k in (4096, 8192))
    assert math.log(whole / half) == pytest.approx(math.log(2), abs=0.2)
    # An H200 has 989 TFLOP/s in bfloat16.
    assert 2 * 8192 * 4096 * 8192 / whole < 1e15
    timer.close()
