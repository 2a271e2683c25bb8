"""A call of an autotuned kernel becomes a description and a tuning file, which are read and compiled."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cuda_runner import H200, toolchain

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

import triton.language as tl  # noqa: E402

from autotune_kernels import masked_copy, scaled_copy, strided_rows  # noqa: E402
from autotuned_calls import CONFIGS, HANGS, RAN, copy_arguments, outcome_of, problem_of  # noqa: E402
from tunesmith import UserError  # noqa: E402
from tunesmith.autotuning import measured_call  # noqa: E402
from tunesmith.autotuning.call_problem import call_problem, listed_config, span  # noqa: E402
from tunesmith.autotuning.call_reference import (  # noqa: E402
    ReferenceResult,
    contents_of,
)
from tunesmith.autotuning.choice import Machine  # noqa: E402
from tunesmith.autotuning.jit_text import JitText  # noqa: E402
from tunesmith.autotuning.measured_call import CallSettings, at_the_call, chosen, measure_call, written  # noqa: E402
from tunesmith.autotuning.tensors import flat_contents, strided_tensor  # noqa: E402
from tunesmith.kernels.custom import CustomTritonKernel  # noqa: E402
from tunesmith.problems.custom import caller  # noqa: E402
from tunesmith.session import events  # noqa: E402
from tunesmith.session.tuning_file.file import read  # noqa: E402


def modules(problem, folder):
    """The module and the plan of each configuration, after the files are read as a run reads them."""
    file = read(written(problem, folder, {}), None, None)
    (phases,) = file.groups
    family, target = CustomTritonKernel(), H200
    defaults = family.space(phases.problem_type).defaults
    configs = [defaults | member for member in problem.listed]
    (size,) = phases.steps[-1].problems
    for config in configs:
        assert not list(family.rejections(config, phases.problem_type, target))
        assert not list(family.rejections_for(config, size, target))
    return [(family.modules(config, phases.problem_type)[0], family.plan(config, size, target)) for config in configs]


def filled(array):
    """What the worker finds in an array's memory."""
    promised = contents_of(array)
    flat = np.zeros(promised.shape, promised.dtype)
    promised.fill(flat)
    return flat


def test_each_configuration_is_a_module_and_a_launch_with_its_grid(tmp_path):
    problem = problem_of(scaled_copy, copy_arguments(), CONFIGS)
    made = modules(problem, tmp_path)
    assert [dict(module.constants["constexprs"])["BLOCK"] for module, _ in made] == [64, 128, 256]
    assert [module.constants["num_warps"] for module, _ in made] == [2, 4, 4]
    assert [plan.steps[0].grid for _, plan in made] == [(2, 1, 1), (1, 1, 1), (1, 1, 1)]
    signature = dict(made[0][0].constants["signature"])
    assert signature == {"y": "*fp32", "x": "*fp32", "count": "i32", "factor": "fp32", "BLOCK": "constexpr"}
    assert "bias = triton.language.constexpr(None)" in problem.source
    assert "MODE = triton.language.constexpr('plain')" in problem.source


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_modules_compile(tmp_path, dtype):
    arguments = copy_arguments(x=torch.zeros(100, dtype=getattr(torch, dtype)), count=112)
    ((module, _), *_) = modules(problem_of(scaled_copy, arguments, CONFIGS), tmp_path)
    assert module.constants["divisible_by_16"] == ("y", "x", "count")
    assert toolchain("Triton").compile(module, H200).facts[0].entry == "scaled_copy"


@triton.heuristics({"EVEN": lambda arguments: arguments["count"] % 2 == 0})
@triton.jit(
    do_not_specialize=["count"],
)
def counted(
    y,  # a comment, which the bound text loses
    count,
    step=1,
    EVEN: tl.constexpr = False,  # noqa: N803
    *,
    BLOCK: tl.constexpr = 64,  # noqa: N803
):
    """The text of a kernel begins below its decorators."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, at * step + EVEN, mask=at < count)


def test_a_kernel_below_several_decorators_has_its_defaults_bound(tmp_path):
    listed = [listed_config(config, {"EVEN": True}, (1,), True, "program.py:1") for config in CONFIGS]
    arguments = {"y": torch.zeros(64, dtype=torch.int32), "count": 1, "step": 1}
    problem = call_problem(JitText(counted.fn), arguments, listed, location="program.py:1")
    assert problem.numbers == {"count": 1}, "a number that is not specialised is passed"
    ((module, _), *_) = modules(problem, tmp_path)
    assert dict(module.constants["constexprs"]) == {"EVEN": True, "BLOCK": 64}
    assert "maxnreg" not in module.constants
    assert toolchain("Triton").compile(module, H200)


@pytest.mark.parametrize(("dtype", "stored"), [("bool", "i8"), ("float8_e5m2", "u8"), ("float8_e4m3fn", "u8")])
def test_pointers_that_no_description_has_are_cast_in_the_text(tmp_path, dtype, stored):
    x = torch.tensor([0.0, 1.0] * 50).to(getattr(torch, dtype))
    problem = problem_of(masked_copy, {"y": torch.zeros(100), "x": x, "count": 100}, CONFIGS)
    ((module, _), *_) = modules(problem, tmp_path)
    assert dict(module.constants["signature"])["x"] == f"*{stored}"
    assert toolchain("Triton").compile(module, H200)
    flat = filled(problem.arrays[1])
    assert (flat.dtype == problem.arrays[1].dtype, bool(flat[0]), bool(flat[1])) == (True, False, True)
    after = ReferenceResult(problem, lambda call: {"x": call["x"]}, {})({}, {"x": flat, "y": np.zeros(100)})
    assert after["x"][0].tolist() == flat.tolist()


def test_strides_stay_numbers_and_a_one_is_a_constant(tmp_path):
    view = torch.zeros(10, 40)[:, ::2]
    assert span(view) == 9 * 40 + 19 * 2 + 1
    arguments = {
        "y": torch.zeros(10, 20),
        "x": view,
        "rows": 10,
        "columns": 20,
        "y_stride": 20,
        "x_stride": 40,
        "x_step": 2,
    }
    problem = problem_of(strided_rows, arguments, CONFIGS, grid=lambda meta: (10,))
    assert [array.extent for array in problem.arrays] == [200, 399]
    whole = problem_of(strided_rows, {**arguments, "x_step": 1}, CONFIGS, grid=lambda meta: (10,))
    assert "x_step = triton.language.constexpr(1)" in whole.source
    ((module, _), *_) = modules(whole, tmp_path)
    assert "x_step" not in dict(module.constants["signature"])
    assert toolchain("Triton").compile(module, H200)


def test_a_configuration_more_changes_no_key():
    few, more = (problem_of(scaled_copy, copy_arguments(), configs) for configs in (CONFIGS[:2], CONFIGS))
    assert (few.name, few.description) == (more.name, more.description)
    assert few.tuning_file != more.tuning_file


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 99},
        {"x": torch.arange(101.0)},
        {"factor": 3.0},
        {"MODE": "other"},
        {"x": torch.arange(100.0, dtype=torch.float16)},
        {"bias": torch.zeros(100)},
    ],
)
def test_what_a_measurement_depends_on_changes_its_key(changes):
    assert problem_of(scaled_copy, copy_arguments(**changes), CONFIGS).name != KEY_NAME
    assert problem_of(scaled_copy, copy_arguments(x=torch.ones(100)), CONFIGS).name == KEY_NAME


KEY_NAME = problem_of(scaled_copy, copy_arguments(), CONFIGS).name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.zeros(3, dtype=torch.complex64)}, "the tensor x holds complex64; "),
        ({"bias": (1, 2)}, "scaled_copy is called with bias, which is a tuple"),
        ({"MODE": len}, "MODE=<built-in function len>, which cannot be written"),
    ],
)
def test_what_cannot_be_described_is_told_at_the_call(changes, message):
    with pytest.raises(UserError, match=r"program\.py:1: .*" + message):
        problem_of(scaled_copy, copy_arguments(**changes), CONFIGS)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([triton.Config({"BLOCK": 64}), triton.Config({"WIDTH": 64, "BLOCK": 1})], "set different arguments"),
        ([triton.Config({"BLOCK": (1, 2)})], r"a configuration sets BLOCK=\(1, 2\)"),
    ],
)
def test_configurations_that_no_tuning_file_holds_are_told(configs, message):
    with pytest.raises(UserError, match=message):
        problem_of(scaled_copy, copy_arguments(), configs, grid=lambda meta: (1,))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "uint8"])
def test_contents_are_those_of_memory_and_finite(dtype):
    base = torch.arange(24).to(getattr(torch, dtype)).reshape(4, 6)
    view = base[1:, ::2]
    flat = flat_contents(view, span(view))
    assert flat.dtype == np.dtype(dtype)
    assert flat.astype(int).tolist() == list(range(6, 6 + span(view)))
    assert (strided_tensor(flat, view) == view).all()
    assert strided_tensor(flat, view).stride() == view.stride()


def test_infinite_numbers_and_none_become_finite():
    for dtype in (torch.float32, torch.bfloat16):
        flat = flat_contents(torch.tensor([float("nan"), float("inf"), -float("inf"), 2.0], dtype=dtype), 4)
        assert np.isfinite(flat.astype(np.float64)).all()
        assert (float(flat[0]), float(flat[3])) == (0.0, 2.0)


def test_zeroed_arrays_begin_with_zeros():
    problem = problem_of(scaled_copy, copy_arguments(y=torch.ones(100)), CONFIGS, reset_to_zero=["y"])
    y, x = problem.arrays
    assert not filled(y).any()
    assert filled(x)[7] == 7


def test_contents_reach_the_worker_in_bfloat16(tmp_path):
    from tunesmith.problems import OPERATIONS

    problem = problem_of(scaled_copy, copy_arguments(x=torch.arange(100).to(torch.bfloat16)), CONFIGS)
    for array in problem.arrays:
        caller.promise_contents(problem.contents_key(array), contents_of(array))
    (phases,) = read(written(problem, tmp_path, {}), None, None).groups
    inputs = OPERATIONS["Custom"].inputs(phases.steps[-1].problems[0], np.random.default_rng(0))
    assert inputs["x"].dtype == np.dtype("bfloat16")
    assert float(inputs["x"][64]) == 64
    for array in problem.arrays:
        caller.forget(problem.contents_key(array))
        assert caller.contents(problem.contents_key(array)) is None


def test_promised_contents_are_made_once_when_the_run_shares_the_problem(tmp_path):
    from tunesmith.problems import OPERATIONS

    problem, made = problem_of(scaled_copy, copy_arguments(), CONFIGS), []

    def fill(array, flat):
        made.append(array.name)
        contents_of(array).fill(flat)

    for array in problem.arrays:
        promised = replace(contents_of(array), fill=partial(fill, array))
        caller.promise_contents(problem.contents_key(array), promised)
    (phases,) = read(written(problem, tmp_path, {}), None, None).groups
    timed, operation = phases.steps[-1].problems[0], OPERATIONS["Custom"]
    assert made == []
    for _ in range(2):
        operation.share(timed, partial(operation.inputs, timed, np.random.default_rng(0)))
    assert sorted(made) == ["x", "y"]
    assert operation.inputs(timed, np.random.default_rng(0))["x"].tolist() == problem.arrays[1].tensor.tolist()
    for array in problem.arrays:
        caller.forget(problem.contents_key(array))
        assert caller.contents(problem.contents_key(array)) is None
    assert sorted(made) == ["x", "y"]


def test_contents_that_find_no_room_are_told_with_the_folder_and_may_be_tried_again(monkeypatch):
    key, made = "a key without room", []
    caller.promise_contents(key, caller.PromisedContents((1000,), "float32", made.append))

    def full(file, start, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "posix_fallocate", full)
        with pytest.raises(UserError, match=r"no room for an array of 4000 bytes .*No space left.*TMPDIR"):
            caller.deliver_contents(key)
    assert made == []
    assert not [path for path in caller._folder().iterdir() if path.suffix != ".npy"], "nothing is left behind"
    caller.deliver_contents(key)
    assert len(made) == 1
    caller.forget(key)


def test_promised_contents_that_nobody_needed_are_forgotten():
    promised = caller.PromisedContents((4,), "float32", lambda flat: pytest.fail("filled for nobody"))
    caller.promise_contents("a key that nobody needs", promised)
    caller.forget("a key that nobody needs")
    assert caller.contents("a key that nobody needs") is None


def test_an_error_in_a_file_of_the_run_is_told_at_the_call(tmp_path):
    found, elsewhere = UserError(f"{tmp_path}/a.yaml:3", "what", "remedy"), UserError("device", "what", "remedy")
    assert at_the_call(found, tmp_path, "program.py:1").location == "program.py:1"
    assert at_the_call(elsewhere, tmp_path, "program.py:1") is elsewhere
    elsewhere.__cause__ = found
    assert at_the_call(elsewhere, tmp_path, "program.py:1") is found


def test_a_decision_is_told_by_positions_in_the_list():
    problem = problem_of(scaled_copy, copy_arguments(), CONFIGS)
    decision = chosen(problem, outcome_of(problem, [RAN, HANGS, RAN], (2, 0)), 3, "program.py:1")
    assert (decision.winner, decision.ties, decision.measured) == (2, (0,), 3)
    assert decision.seconds == {0: 1e-5, 2: 1e-5}
    assert decision.failures == {1: "timeout: hangs: after 10 s"}


def test_a_run_without_a_winner_is_told_with_its_reasons():
    problem = problem_of(scaled_copy, copy_arguments(), CONFIGS)
    with pytest.raises(UserError, match="no configuration of scaled_copy ran right: timeout: hangs: after 10 s"):
        chosen(problem, outcome_of(problem, [HANGS] * 3, ()), 3, "program.py:1")


def test_a_run_finds_files_contents_and_a_reference_that_are_gone_afterwards(monkeypatch, tmp_path):
    arguments = copy_arguments()
    problem = problem_of(scaled_copy, arguments, CONFIGS, reference="digest")

    def run(path, folder, device, order, checks_logic, observe):
        assert not checks_logic
        assert read(path, None, None).globals.policy() == {"timeout_seconds": 5}
        assert caller.contents(problem.contents_key(problem.arrays[1])).tolist() == arguments["x"].tolist()
        assert caller.registered_reference(problem.reference_key)
        observe(events.BatchBegan("", 3, 1))
        observe(events.BatchBegan("", 2, 0))
        return outcome_of(problem, [RAN, HANGS, RAN], (2,))

    monkeypatch.setattr(measured_call, "tune_file", run)
    settings = CallSettings(lambda call: {}, {"TimeoutSeconds": 5}, quiet=True)
    machine = Machine("a GPU", "Triton 0", "CUDA:0")
    decision = measure_call(problem, arguments, tmp_path, machine, settings, "program.py:1")
    assert (decision.winner, decision.measured) == (2, 2)
    assert caller.contents(problem.contents_key(problem.arrays[1])) is None
    assert not caller.registered_reference(problem.reference_key)
