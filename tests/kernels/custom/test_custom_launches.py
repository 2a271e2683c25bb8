"""A described kernel with several launches, and with scratch memory between them."""

from __future__ import annotations

import numpy as np
import pytest

import blur_kernel
from described import TARGET, edited, type_of
from opencl_runner import opencl_device
from tunesmith.bench import Batch, Bench, Job, Policy, Race
from tunesmith.kernels.custom import CustomKernel
from tunesmith.problems.custom import CustomOperation
from tunesmith.records import OperandArgument, Outcome, Problem, Solution, UserError, WorkspaceArgument


@pytest.fixture
def blur(tmp_path):
    return blur_kernel.write(tmp_path)


def planned(problem_type, sizes=(6, 10), **values):
    kernel = CustomKernel()
    return kernel.plan(kernel.space(problem_type).defaults | values, Problem(problem_type, sizes), TARGET)


def test_each_launch_has_its_kernel_its_arguments_and_its_grid(blur):
    plan = planned(type_of(blur), GROUP=32)
    rows, columns = plan.steps
    assert (rows.entry, rows.grid, rows.work_group) == ("rows", (2, 1, 1), (32, 1, 1))
    assert (columns.entry, columns.grid, columns.work_group) == ("columns", (1, 1, 1), (64, 1, 1))
    assert rows.arguments[:2] == (OperandArgument("input"), WorkspaceArgument(0))
    assert columns.arguments[:2] == (WorkspaceArgument(0), OperandArgument("output"))
    assert [argument.value for argument in columns.arguments[2:]] == [10, 60]


def test_scratch_is_no_operand_and_its_shape_may_name_parameters(blur):
    problem_type = type_of(blur)
    operands = CustomOperation().operands(Problem(problem_type, (6, 10)))
    assert [operand.name for operand in operands] == ["input", "output"]
    assert planned(problem_type, GROUP=32).workspace_bytes == 1024, "6 rows of 42 floats, rounded up to 256 bytes"
    assert planned(problem_type, GROUP=64).workspace_bytes == 1792, "6 rows of 74 floats, rounded up"


def test_several_scratch_arrays_lie_apart(blur):
    more = "  - {Name: columns, DataType: int32, Value: Columns}"
    edited(blur, more, "  - {Name: other, DataType: float64, Shape: [5], Role: scratch}\n" + more)
    edited(blur, "Arguments: [between, output,", "Arguments: [other, between, output,")
    plan = planned(type_of(blur), GROUP=32)
    assert plan.steps[1].arguments[:2] == (WorkspaceArgument(1024), WorkspaceArgument(0))
    assert plan.workspace_bytes == 1280


def test_every_launch_must_fit_the_device_and_all_memory_counts(blur):
    kernel, problem_type = CustomKernel(), type_of(edited(blur, "WorkGroup: [2 * GROUP]", "WorkGroup: [8 * GROUP]"))
    config = kernel.space(problem_type).defaults
    assert not list(kernel.rejections(config, problem_type, TARGET))
    (rejection,) = kernel.rejections(config | {"GROUP": 64}, problem_type, TARGET)
    assert str(rejection) == "work-group size: 512 work-items, the device allows 256"
    large = Problem(problem_type, (1 << 13, 1 << 13))
    assert [str(rejection) for rejection in kernel.rejections_for(config, large, TARGET)] == [
        "allocation size: scratch has 269484032 bytes, the device allocates at most 268435456"
    ]


def test_the_kernels_of_all_launches_are_in_one_module(blur):
    problem_type = type_of(blur)
    (module,) = CustomKernel().modules(CustomKernel().space(problem_type).defaults, problem_type)
    assert module.entries == ("rows", "columns")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Tolerance: 18", "Tolerance: 18\nEntry: rows", "Entry stands beside Launches"),
        ("Tolerance: 18", "Tolerance: 18\nLocalMemory: 4", "LocalMemory stands beside Launches"),
        ("    Arguments: [input, between,", "    Arguments: [image, between,", "there is no argument image"),
        (
            "Value: Rows * Columns}\n",
            "Value: 1}\n  - {Name: unused, DataType: int32, Value: 1}\n",
            "the argument unused",
        ),
        ("[Rows, Columns + GROUP]", "[Rows, Columns + GROUPS]", "names GROUPS"),
        ("Role: out", "Role: scratch", "no argument is an output"),
        ("WorkGroup: [GROUP]", "WorkGroup: []", "WorkGroup has 0 dimensions"),
        ("    WorkGroup: [GROUP]\n", "", "WorkGroup"),
        ("  - Entry: rows", "  - entry: rows", "entry"),
    ],
)
def test_a_mistake_in_a_launch_names_its_line(blur, old, new, message):
    with pytest.raises(UserError, match=rf"blur\.yaml:\d+.*{message}"):
        type_of(edited(blur, old, new))


def test_launches_may_not_be_empty(blur):
    text = blur.read_text()
    start, end = text.index("Launches:"), text.index("Reference:")
    blur.write_text(text[:start] + "Launches: []\n" + text[end:])
    with pytest.raises(UserError, match="Launches is empty"):
        type_of(blur)


BREAKS = {
    "right": ("", "", Outcome.OK),
    "columns": ("between[i - columns]", "between[i]", Outcome.WRONG_RESULT),
    "rows": ("column ? input[i - 1] : 0", "input[i]", Outcome.WRONG_RESULT),
}
"""Texts to replace in the source, and the outcome."""


@pytest.mark.opencl
def test_the_bench_verifies_what_all_launches_give_together(tmp_path):
    problem_types = {}
    for name, (old, new, _) in BREAKS.items():
        (tmp_path / name).mkdir()
        path = blur_kernel.write(tmp_path / name)
        edited(path.with_suffix(".cl"), old, new)
        problem_types[name] = type_of(path)
    jobs = [
        Job(name, Solution(kind, "Custom", CustomKernel().space(kind).defaults), Problem(kind, (31, 47)))
        for name, kind in problem_types.items()
    ]
    policy = Policy(minimum_samples=2, maximum_samples=3)
    with Bench(opencl_device().target, policy, tmp_path / "cache") as bench:
        outcomes = {job.key: measured.outcome for job, measured in bench.run(Batch((Race(tuple(jobs)),)))}
    assert outcomes == {name: outcome for name, (_, _, outcome) in BREAKS.items()}


def test_the_reference_is_a_blur():
    found = {}
    exec(blur_kernel.REFERENCE, found)
    value, magnitude = found["blur"]({}, {"input": -np.eye(3)})["output"]
    assert value.tolist() == [[-2, -2, -1], [-2, -3, -2], [-1, -2, -2]]
    assert (magnitude == -value).all()
