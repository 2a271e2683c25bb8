"""The values that the configurations of a call are compared with: of the first that runs, or of a reference."""

from __future__ import annotations

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from autotune_kernels import scaled_copy  # noqa: E402
from autotuned_calls import CONFIGS, HANGS, RAN, copy_arguments, outcome_of, problem_of  # noqa: E402
from tunesmith import UserError  # noqa: E402
from tunesmith.autotuning import measured_call  # noqa: E402
from tunesmith.autotuning.choice import Machine  # noqa: E402
from tunesmith.autotuning.first_result import (  # noqa: E402
    FirstResult,
    LaunchInProcess,
    ReferenceResult,
    expectation,
    job,
    refuse_infinite,
)
from tunesmith.autotuning.measured_call import CallSettings, measure_call  # noqa: E402
from tunesmith.problems.custom import caller  # noqa: E402


def test_the_bound_follows_the_type_and_what_the_launch_changed():
    before = {"y": np.zeros(4, np.float32), "n": np.zeros(2, np.int32), "x": np.full(3, 1e30, np.float32)}
    after = {"y": np.array([0, 3, 4, 0], np.float32), "n": np.array([0, 5], np.int32), "x": before["x"]}
    expected = expectation(before, after)
    value, magnitude = expected["y"]
    assert value.tolist() == [0, 3, 4, 0]
    assert magnitude[0] == pytest.approx(8192 * (25 / 2) ** 0.5)
    assert magnitude[2] == pytest.approx(8192 * (4 + (25 / 2) ** 0.5))
    assert expected["n"][1].tolist() == [0, 0]


def test_a_reference_changes_copies_or_returns_tensors():
    arguments = copy_arguments()
    problem = problem_of(scaled_copy, arguments, CONFIGS)
    flat = {"x": np.arange(100.0), "y": np.zeros(100)}

    def changes(call):
        call["y"].copy_(call["x"] * call["factor"])

    def returns(call):
        return {"y": call["x"] * call["factor"]}

    for reference in (changes, returns):
        value, _ = ReferenceResult(problem, reference, arguments)({}, flat)["y"]
        assert value.tolist() == (np.arange(100) * 2.5).tolist()
    assert not arguments["y"].any()


def test_a_result_that_is_not_finite_is_told():
    with pytest.raises(UserError, match=r"program\.py:1: kernel writes numbers into y that are not finite"):
        refuse_infinite({"n": np.zeros(2, int), "y": np.array([1, np.nan])}, "kernel", "program.py:1")


def test_the_process_gets_numbers_and_one_configuration():
    problem = problem_of(scaled_copy, copy_arguments(), CONFIGS)
    sent = job(problem, {**problem.listed[0], "maxnreg": 0}, "cuda:0")
    assert sent["config"] == {"BLOCK": 64, "num_warps": 2, "num_stages": 3, "num_ctas": 1}
    assert sent["grid"] == [2, 1, 1]
    assert sent["numbers"] == {"count": 100, "factor": 2.5}
    assert sent["arrays"] == {"y": "float32", "x": "float32"}


def test_the_first_configuration_that_runs_in_time_gives_the_values(monkeypatch):
    """Triton's interpreter stands in for a GPU. A BLOCK of 64 hangs, and 100 is no power of two."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    arguments = copy_arguments(MODE="hang", bias=torch.zeros(100), x=torch.arange(100, dtype=torch.float16))
    configs = [triton.Config({"BLOCK": block}) for block in (100, 64, 128)]
    problem = problem_of(scaled_copy, arguments, configs)
    before = {"x": np.arange(100.0), "y": np.zeros(100), "bias": np.zeros(100)}
    value, magnitude = FirstResult(problem, "cpu", "program.py:1", 15)({}, before)["y"]
    assert value.tolist() == (np.arange(100) * 2.5).tolist()
    assert (magnitude > value).all()


def test_a_launch_that_began_ahead_is_used_once_and_its_process_ends_with_the_block(monkeypatch, tmp_path):
    """Triton's interpreter stands in for a GPU."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    problem = problem_of(scaled_copy, copy_arguments(bias=torch.zeros(100)), CONFIGS)
    before = {"x": np.arange(100, dtype=np.float32), "y": np.zeros(100, np.float32), "bias": np.zeros(100, np.float32)}
    with LaunchInProcess(problem, problem.listed[0], "cpu", before, 30) as ahead:
        first = FirstResult(problem, "cpu", "program.py:1", 30, ahead)
        doubled = {**before, "x": 2 * before["x"]}
        assert first({}, doubled)["y"][0].tolist() == (np.arange(100) * 2.5).tolist(), "what began ahead saw its arrays"
        assert first({}, doubled)["y"][0].tolist() == (np.arange(100) * 5.0).tolist()
    with LaunchInProcess(problem, problem.listed[0], "cpu", before, 30) as unused:
        assert unused.process.poll() is None
    assert unused.process.poll() is not None


@pytest.mark.parametrize("has_reference", [False, True])
def test_the_first_configuration_is_launched_while_the_run_is_prepared(has_reference, monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(measured_call, "torch_device", lambda selector: "cpu")
    problem, begun = problem_of(scaled_copy, copy_arguments(bias=torch.zeros(100)), CONFIGS), []

    class Launch(LaunchInProcess):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            begun.append(self)

    def run(path, folder, **options):
        assert len(begun) == (not has_reference), "before the run asks for anything"
        inputs = {array.name: caller.contents(problem.contents_key(array)) for array in problem.arrays}
        value, _ = caller.registered_reference(problem.reference_key)({}, inputs)["y"]
        assert value.tolist() == (np.arange(100) * 2.5).tolist()
        return outcome_of(problem, [RAN, HANGS, RAN], (2,))

    monkeypatch.setattr(measured_call, "LaunchInProcess", Launch)
    monkeypatch.setattr(measured_call, "tune_file", run)
    arguments = copy_arguments(bias=torch.zeros(100))
    reference = (lambda call: {"y": call["x"] * call["factor"]}) if has_reference else None
    settings = CallSettings(reference, first_seconds=30, quiet=True)
    measure_call(problem, arguments, tmp_path, Machine("a GPU", "Triton 0", "CUDA:0"), settings, "program.py:1")


def test_a_list_in_which_nothing_runs_is_told(tmp_path):
    problem = problem_of(scaled_copy, copy_arguments(), CONFIGS[:2])
    with pytest.raises(UserError, match=r"program\.py:1: no configuration of scaled_copy runs: no end within 0\.01 s"):
        FirstResult(problem, "cpu", "program.py:1", 0.01)({}, {"x": np.zeros(100), "y": np.zeros(100)})
