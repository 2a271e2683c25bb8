"""A case without a reference: results are compared with those of a first launch, on the host and on the device."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from bench_jobs import GPU
from hosted_device import hosted_verifier, judged
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.verify import Verifier
from tunesmith.devices.fake import FakeDevice
from tunesmith.records import Operand, Plan, Zero

COUNT = 301
TOLERANCE = 2.0**-10
PLANS = [Plan((Zero("y", 0, size),)) for size in (1, 2, 3)]
"""Plans that differ, so that the device below can tell them apart. None is carried out as it stands."""


@pytest.fixture(
    params=[
        "host",
        "NumPy",
        *(pytest.param(api, marks=getattr(pytest.mark, mark)) for api, mark in (("OpenCL", "opencl"), ("CUDA", "gpu"))),
    ]
)
def judge(request):
    """Where results are compared."""
    return request.param


class Writing(FakeDevice):
    """Each plan, by its number in PLANS, writes its own results to `y`."""

    def __init__(self, *results):
        super().__init__(GPU)
        self.results, self.launches = results, []

    def prepare(self, plan, programs, operands, workspace):
        number = PLANS.index(plan)

        def write():
            content = np.ascontiguousarray(self.results[number]).view(np.uint8)
            memory = operands["y"]
            memory.base[memory.start :][: content.size] = content
            self.launches.append(number)

        return SimpleNamespace(enqueue=write)


def case_of(dtype="float32", role="inout", tolerance=TOLERANCE):
    before = {"y": np.full(COUNT, 7).astype(dtype)} if role == "inout" else {}
    return VerificationCase((Operand("y", dtype, (COUNT,), (1,), role),), before, {}, {"y": tolerance})


def results(dtype="float32", seed=0):
    drawn = np.random.default_rng(seed).uniform(1, 100, COUNT)
    return drawn.astype(dtype)


def changed(array, index, factor):
    copied = array.copy()
    copied[index] = (copied[index].astype(float) * factor).astype(array.dtype)
    return copied


@pytest.mark.parametrize("role", ["inout", "out"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_result_must_be_as_near_to_the_first_as_its_magnitude_and_a_typical_one_allow(judge, dtype, role):
    first = results(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    wide = first.astype(float)
    bound = TOLERANCE * 32 * (wide[5] + np.sqrt(np.mean(wide**2)))
    near, far = (changed(first, 5, 1 + share * bound / wide[5]) for share in (0.5, 3))
    for result, is_right in ((near, True), (far, False)):
        wrong = judged(
            judge, Writing(first, result), [], PLANS[1], case_of(dtype, role, 32 * TOLERANCE), ([], PLANS[0])
        ).wrong
        assert (wrong is None) == is_right, wrong
    assert wrong.reason == "wrong value"
    assert wrong.detail.startswith(f"y[5] is {far.astype(float)[5]:.9g}, expected {wide[5]:.9g} within {bound:.3g}"), (
        wrong
    )
    assert wrong.detail.endswith(f"1 of {COUNT} elements wrong")


def test_what_the_first_launch_left_as_it_was_does_not_make_the_bound_wider(judge):
    """All but ten elements keep a huge value; the bound follows the ten."""
    first = np.full(COUNT, 7, np.float32)
    first[:10] = 1e-3
    wrong = judged(judge, Writing(first, changed(first, 3, 1.01)), [], PLANS[1], case_of(), ([], PLANS[0])).wrong
    assert wrong is not None
    assert "y[3]" in wrong.detail


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_whole_numbers_must_be_those_of_the_first(judge, dtype):
    first = results(dtype)
    other = first.copy()
    other[300] += 1
    device = Writing(first, first, other)
    assert judged(judge, device, [], PLANS[1], case_of(dtype), ([], PLANS[0])).wrong is None
    wrong = judged(judge, device, [], PLANS[2], case_of(dtype), ([], PLANS[0])).wrong
    assert wrong is not None
    assert wrong.detail.startswith(f"y[300] is {other[300]}, expected {first[300]}")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_first_result_that_is_not_finite_cannot_be_compared_with(judge, number):
    first = results()
    first[200] = number
    wrong = judged(judge, Writing(first), [], PLANS[0], case_of()).wrong
    assert wrong is not None
    assert (wrong.reason, wrong.detail.split()[0]) == ("not finite", "y")


def test_a_first_solution_that_gives_other_results_each_time_is_wrong(judge):
    class Restless(Writing):
        def prepare(self, plan, programs, operands, workspace):
            prepared = super().prepare(plan, programs, operands, workspace)

            def write():
                self.results = (changed(results(), 8, 1 + len(self.launches)),)
                prepared.enqueue()

            return SimpleNamespace(enqueue=write)

    wrong = judged(judge, Restless(), [], PLANS[0], case_of()).wrong
    assert wrong is not None
    assert "y[8]" in wrong.detail


@pytest.mark.parametrize("kept_on", ["host", "NumPy"])
def test_the_first_is_launched_once_for_all_candidates_and_again_after_its_memory_was_freed(kept_on):
    device = Writing(results(), results(), changed(results(), 0, 2))
    if kept_on == "host":
        verifier = Verifier(device)
    else:
        checking, verifier = hosted_verifier("NumPy")
        checking.host = device
    case, first = case_of(), ([], PLANS[0])
    assert verifier.judge([], PLANS[1], case, first).wrong is None
    assert verifier.judge([], PLANS[2], case, first).wrong is not None
    assert verifier.judge([], PLANS[1], case, first).wrong is None
    assert device.launches.count(0) == 1
    verifier.clear()
    assert verifier.judge([], PLANS[2], case, first).wrong is not None
    assert device.launches.count(0) == (1 if kept_on == "host" else 2)


def test_a_plan_is_bound_to_its_memory_once_for_all_its_runs():
    """And the first launch's plan by itself."""
    bound = []

    class Counted(Writing):
        def prepare(self, plan, programs, operands, workspace):
            bound.append(PLANS.index(plan))
            return super().prepare(plan, programs, operands, workspace)

    device = Counted(results(), results())
    programs = []
    assert judged("host", device, programs, PLANS[1], case_of(), (programs, PLANS[0])).wrong is None
    assert bound == [0, 1]
    assert device.launches == [0, 1, 1, 1]
