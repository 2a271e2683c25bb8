"""The device runner in the test's process: what it keeps for the next candidates, and frees when memory is short."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bench_jobs import GPU, OPERATION, QUICK, TYPE, job, problem
from cuda_runner import cuda_device
from opencl_runner import opencl_device
from tunesmith.bench.details import JobDetails, JobPlans
from tunesmith.bench.device_runner import DeviceRunner, Rotation
from tunesmith.bench.processes.messages import Candidate, InterleaveRequest, MeasureRequest
from tunesmith.devices import LaunchError
from tunesmith.devices.fake import FakeDevice, fake_target
from tunesmith.kernels import KERNELS
from tunesmith.records import Outcome, UserError
from tunesmith.toolchains import TOOLCHAINS
from tunesmith.toolchains.fake import FakeToolchain

SIZE = problem(64, 48, 32, leading=(70, 71, 72, 73))
REAL = [
    pytest.param(opencl_device, "RegisterGemm", marks=pytest.mark.opencl),
    pytest.param(cuda_device, "CudaSimtGemm", marks=pytest.mark.gpu),
]


def request(device, family, size):
    config = family.space(TYPE, device.target).defaults
    compiler = TOOLCHAINS[family.language]
    binaries = tuple(compiler.compile(module, device.target) for module in family.modules(config, TYPE))
    checks = tuple((check, family.plan(config, check, device.target)) for check in OPERATION.checks(size))
    return MeasureRequest(Candidate(binaries, size, JobPlans(checks[0][1], checks)), math.inf)


@pytest.mark.parametrize(("opened", "family"), REAL)
def test_every_set_to_time_with_holds_what_was_verified_with(opened, family):
    device = opened()
    runner = DeviceRunner(device, QUICK, lambda at: None)
    (measurement,) = runner.measure(request(device, KERNELS[family], SIZE)).measurements
    assert measurement.ok, measurement
    assert measurement.error is not None
    inputs = runner._cases.inputs(SIZE)
    (operand_sets,) = runner._operand_sets._kept.values()
    for operand in OPERATION.operands(SIZE):
        for buffers in operand_sets.sets if operand.role == "in" else []:
            storage = device.read(buffers[operand.name], inputs[operand.name].nbytes).view(operand.dtype)
            assert np.array_equal(storage, inputs[operand.name], equal_nan=True)
    runner._operand_sets.clear()
    runner._verifier.clear()


def test_a_plan_is_bound_to_a_set_before_its_first_use_and_once():
    device, bound, timed = FakeDevice(fake_target("GPU")), [], []
    sets = [{"A": number} for number in range(5)]
    rotation = Rotation(device, sets, lambda chosen: bound.append(chosen["A"]) or chosen["A"])
    device.time = lambda executions: timed.append(list(executions)) or 30e-6 * len(executions)
    for numbers in ([0], [1, 2], [3, 4], [0, 1]):
        assert rotation() == pytest.approx(30e-6)
        assert (timed[-1], bound) == (numbers, list(range(5))[: sum(map(len, timed))])


def test_what_is_kept_for_the_next_candidates_gives_way_when_room_is_short():
    """This device only has room for the verification, if nothing else is kept."""
    device = FakeDevice(replace(fake_target("GPU"), global_memory_bytes=4_300_000))
    runner = DeviceRunner(device, QUICK, lambda at: None)
    for size in (problem(48), problem(40), problem(48)):
        details = JobDetails(job(size), GPU)
        binaries = tuple(FakeToolchain().compile(module, GPU) for _, module in details.modules)
        candidate = Candidate(binaries, size, details.plans([]))
        (measurement,) = runner.measure(MeasureRequest(candidate, math.inf)).measurements
        assert measurement.ok, measurement
    assert len(runner._operand_sets._kept) == 1


def with_workspace(size, workspace_bytes):
    """A candidate whose timed plan has such a workspace."""
    details = JobDetails(job(size), GPU)
    binaries = tuple(FakeToolchain().compile(module, GPU) for _, module in details.modules)
    plans = details.plans([])
    return Candidate(binaries, size, replace(plans, timed=replace(plans.timed, workspace_bytes=workspace_bytes)))


@pytest.fixture
def short(monkeypatch):
    """A runner on a device that has room for a workspace of 5000 bytes only if no operands to time with are kept, and
    for one of 6000 bytes never."""
    device = FakeDevice(GPU)
    runner, allocate = DeviceRunner(device, QUICK, lambda at: None), device.allocate

    def allocated(size):
        if size == 6000 or (size == 5000 and runner._operand_sets._kept):
            raise LaunchError("out of memory", "none left")
        return allocate(size)

    monkeypatch.setattr(device, "allocate", allocated)
    return runner


def test_operands_of_earlier_problems_give_way_to_a_workspace(short):
    for size, workspace_bytes in ((problem(48), 0), (problem(40), 5000)):
        (measurement,) = short.measure(MeasureRequest(with_workspace(size, workspace_bytes), math.inf)).measurements
        assert measurement.ok, measurement
    assert len(short._operand_sets._kept) == 1


@pytest.mark.parametrize("workspace_bytes", [5000, 6000])
def test_operands_that_other_finalists_are_timed_with_do_not_give_way(short, workspace_bytes):
    finalists = tuple(with_workspace(problem(48), size) for size in (0, workspace_bytes))
    first, second = short.interleave(InterleaveRequest(finalists)).measurements
    assert first.ok, first
    assert (second.outcome, second.reason) == (Outcome.LAUNCH_ERROR, "out of memory")
    assert len(short._operand_sets._kept) == 1
    assert not short._samplers


def test_a_problem_that_cannot_be_prepared_ahead_is_left_to_its_candidate(monkeypatch):
    runner, tried = DeviceRunner(FakeDevice(GPU), QUICK, lambda at: None), []

    def refuse(size):
        tried.append(size)
        raise UserError("a file", "the reference failed", "mend it")

    monkeypatch.setattr(runner._cases, "get", refuse)
    runner.prepare_problems((SIZE, problem()))
    assert tried == [SIZE]
