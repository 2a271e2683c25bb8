"""A user's reference of a call: the values that the configurations are compared with."""

from __future__ import annotations

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from autotune_kernels import scaled_copy  # noqa: E402
from autotuned_calls import CONFIGS, RAN, copy_arguments, outcome_of, problem_of  # noqa: E402
from tunesmith.autotuning import measured_call  # noqa: E402
from tunesmith.autotuning.call_reference import ReferenceResult, expectation  # noqa: E402
from tunesmith.autotuning.choice import Machine  # noqa: E402
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


@pytest.mark.parametrize("has_reference", [False, True])
def test_a_reference_is_handed_to_the_run_and_without_one_the_first_that_runs_is(has_reference, monkeypatch, tmp_path):
    arguments = copy_arguments(bias=torch.zeros(100))
    problem = problem_of(scaled_copy, arguments, CONFIGS, reference="digest" if has_reference else "")

    def run(path, folder, **options):
        assert ("Reference: first\n" in problem.description) == (not has_reference)
        inputs = {array.name: caller.contents(problem.contents_key(array)) for array in problem.arrays}
        function = caller.registered_reference(problem.reference_key)
        assert (function is not None) == has_reference
        if function:
            value, _ = function({}, inputs)["y"]
            assert value.tolist() == (np.arange(100) * 2.5).tolist()
        return outcome_of(problem, [RAN, RAN, RAN], (2,))

    monkeypatch.setattr(measured_call, "tune_file", run)
    reference = (lambda call: {"y": call["x"] * call["factor"]}) if has_reference else None
    settings = CallSettings(reference, quiet=True)
    measure_call(problem, arguments, tmp_path, Machine("a GPU", "Triton 0", "CUDA:0"), settings, "program.py:1")
    assert caller.registered_reference(problem.reference_key) is None, "forgotten when the run is over"
