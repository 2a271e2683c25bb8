"""The user's own kernel: a short YAML file becomes an operation and a kernel family, with mistakes at their line."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from described import EXAMPLES, STENCIL, TARGET, edited, type_of
from tunesmith.devices import LaunchError, choose, open_device
from tunesmith.kernels import languages, tuning_space
from tunesmith.kernels.custom import CustomCudaKernel, CustomKernel
from tunesmith.problems.custom import CustomOperation
from tunesmith.records import Launch, Problem, ProblemType, UserError
from tunesmith.toolchains import TOOLCHAINS


def config(problem_type, **values):
    return CustomKernel().space(problem_type).defaults | values


def reasons(problem_type, sizes=(64, 64), **values):
    kernel, chosen = CustomKernel(), config(problem_type, **values)
    either = [
        *kernel.rejections(chosen, problem_type, TARGET),
        *kernel.rejections_for(chosen, Problem(problem_type, sizes), TARGET),
    ]
    return [rejection.reason for rejection in either]


def test_the_type_says_its_operands_and_work():
    problem_type = type_of(EXAMPLES / STENCIL)
    again = ProblemType.from_json(problem_type.to_json())
    problem = Problem(again, (5, 7))
    assert problem_type.name == "stencil5"
    assert problem_type.indices == ("Rows", "Columns")
    assert [(o.name, o.shape, o.strides, o.role) for o in CustomOperation().operands(problem)] == [
        ("input", (5, 7), (7, 1), "in"),
        ("output", (5, 7), (7, 1), "out"),
    ]
    assert CustomOperation().flops(problem) == 6 * 35
    assert CustomOperation().bytes(problem) == 2 * 4 * 35


@pytest.mark.parametrize("name", [STENCIL, "custom_stencil.cl", "custom_stencil.cu", "custom_stencil.py"])
def test_any_change_makes_another_type_and_those_who_hold_the_old_one_go_on_with_it(copied, name):
    before = type_of(copied)
    (module,) = CustomKernel().modules(config(before), before)
    (copied.parent / name).write_text((copied.parent / name).read_text() + "\n")
    after = type_of(copied)
    assert after != before
    assert CustomKernel().space(after).defaults
    assert CustomKernel().modules(config(before), before) == (module,)


def test_parameters_become_macros_and_the_plan_follows_the_expressions():
    problem_type = type_of(EXAMPLES / STENCIL)
    chosen = config(problem_type, GROUP_X=8, GROUP_Y=2, ITEM_X=4)
    (module,) = CustomKernel().modules(chosen, problem_type)
    (launch,) = CustomKernel().plan(chosen, Problem(problem_type, (5, 33)), TARGET).steps
    assert {"-DGROUP_X=8", "-DGROUP_Y=2", "-DITEM_X=4", "-DSTAGED=0"} <= set(module.options)
    assert isinstance(launch, Launch)
    assert (launch.grid, launch.work_group) == ((2, 3, 1), (8, 2, 1))


def test_work_items_are_rounded_up_to_whole_groups(copied):
    old = 'WorkGroups: ["ceil_div(Columns, GROUP_X * ITEM_X)", "ceil_div(Rows, GROUP_Y * ITEM_Y)"]'
    problem_type = type_of(edited(copied, old, "WorkItems: [Columns, Rows]"))
    (launch,) = CustomKernel().plan(config(problem_type), Problem(problem_type, (5, 33)), TARGET).steps
    assert isinstance(launch, Launch)
    assert launch.grid == (3, 2, 1)


def test_what_cannot_run_is_rejected_with_its_reason(copied):
    problem_type = type_of(
        edited(copied, "Constraints:", "Constraints:\n  - {Require: Rows % ITEM_Y == 0, Reason: rows}")
    )
    assert reasons(problem_type) == []
    assert reasons(problem_type, GROUP_X=4, GROUP_Y=1) == ["less than one sub-group"]
    assert reasons(problem_type, GROUP_X=64, GROUP_Y=8) == ["work-group size"]
    assert reasons(problem_type, GROUP_X=64, STAGED=1, GROUP_Y=4, ITEM_X=4) == ["local memory"]
    assert reasons(problem_type, (63, 64), ITEM_Y=2) == ["rows"]
    assert reasons(problem_type, (1 << 14, 1 << 13)) == ["allocation size"]
    assert reasons(problem_type, (1, 1 << 32)) == ["allocation size", "memory", "argument range"]


def test_double_precision_is_asked_of_the_device(copied):
    problem_type = type_of(edited(copied, "input,  DataType: float32", "input,  DataType: float64"))
    assert "double precision" in reasons(problem_type)


def test_the_small_problem_keeps_what_constraints_speak_of(copied):
    plain, big = type_of(copied), (1000, 2000)
    assert CustomOperation().small(Problem(plain, big)).sizes == (64, 64)
    bound = type_of(edited(copied, "Constraints:", "Constraints:\n  - {Require: Rows % 8 == 0, Reason: rows}"))
    assert CustomOperation().small(Problem(bound, big)).sizes == (1000, 64)


def test_inputs_have_no_zeros_and_keep_to_their_range(copied):
    random = np.random.default_rng(1)
    plain = CustomOperation().inputs(Problem(type_of(copied), (20, 30)), random)
    assert set(plain) == {"input"}
    assert (np.abs(plain["input"]) >= 0.5).all()
    assert 100 < (plain["input"] > 0).sum() < 500
    text = "input,  DataType: int32, Range: [0, Columns]"
    ranged = CustomOperation().inputs(
        Problem(type_of(edited(copied, "input,  DataType: float32", text)), (200, 7)), random
    )
    assert set(ranged["input"].tolist()) == set(range(7))


def test_the_bound_scales_with_the_magnitude_that_the_reference_gives():
    problem = Problem(type_of(EXAMPLES / STENCIL), (9, 9))
    ones = np.ones(81, np.float32)
    alternating = (ones.reshape(9, 9) * np.where(np.indices((9, 9)).sum(axis=0) % 2, -1, 1)).astype(np.float32).ravel()
    plain = CustomOperation().reference(problem, {"input": ones})["output"]
    cancelling = CustomOperation().reference(problem, {"input": alternating})["output"]
    assert plain.bound[4, 4] == pytest.approx(6 * 2.0**-24)
    assert cancelling.value[4, 4] == 0
    assert cancelling.bound[4, 4] == plain.bound[4, 4]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def stencil(", "def other(", "no function stencil"),
        ("import numpy", "import nompy", "cannot be imported: ModuleNotFoundError"),
        ("    return {", "    return 1 {", "cannot be imported: SyntaxError"),
        ("import numpy as np", "import numpy as np\nraise SystemExit(1)", "cannot be imported: SystemExit"),
        ('arrays["input"]', 'arrays["inputs"]', "raised KeyError"),
        ('"output"', '"result"', "gave result, the outputs are output"),
        ("0.5 * grid", "0.5 * grid[:-1]", "raised ValueError"),
        ("return 0.5 * grid", "return np.nan * grid", "not finite"),
        ("return 0.5 * grid + 0.125 * around", "return 'x'", "no array of numbers"),
        ("return 0.5 * grid + 0.125 * around", "return 1.0", "the shape ()"),
    ],
)
def test_a_mistake_in_the_reference_is_shown_at_the_line_that_names_it(copied, old, new, message):
    edited(copied.with_name("custom_stencil.py"), old, new)
    problem = Problem(type_of(copied), (4, 4))
    with pytest.raises(UserError) as caught:
        CustomOperation().reference(problem, {"input": np.ones(16, np.float32)})
    line = next(n for n, text in enumerate(copied.read_text().splitlines(), 1) if text.startswith("Reference"))
    assert caught.value.location == f"{copied}:{line}"
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Sizes: [Rows, Columns]", "Sizes: []", "Sizes is empty"),
        ("Sizes: [Rows, Columns]", "Sizes: [Rows, Rows, Columns]", "names two things"),
        ("Sizes: [Rows, Columns]", "Sizes: [Rows, GROUP_X, Columns]", "names two things"),
        ("Sizes: [Rows, Columns]", "Sizes: Rows", "Sizes is Rows, expected a list"),
        ("Flops:", "Flop:", "did you mean Flops?"),
        ("Flops: 6 * Rows * Columns", "", "has no Flops"),
        ("Flops: 6 * Rows", "Flops: 6 * GROUP_X", "names GROUP_X; here may stand Rows, Columns"),
        ("Flops: 6 * Rows", "Flops: 6 ** Rows.real", "is not allowed"),
        ("Tolerance: 6", "#", "no Tolerance"),
        ("Role: out", "Role: in", "no argument is an output"),
        ("Role: out", "Role: result", "give in, out, inout or scratch"),
        ("Default: 16,", "Default: 17,", "not among its values"),
        ("Values: [4, 8, 16, 32, 64]", "Values: []", "has no values"),
        ("Values: [4, 8, 16, 32, 64]", "Values: [4, a b]", "cannot be 'a b'"),
        ("DataType: int32, Value: Rows", "DataType: int, Value: Rows", "give one of float16"),
        ("Name: rows, ", "Name: input, ", "names two things"),
        ("custom_stencil.cl", "missing.cl", "cannot be read"),
        ("custom_stencil.py:stencil", "custom_stencil.py", "file.py:function"),
        ("Flops: 6 * Rows * Columns", "Flops: -6", "'-6' is -6; it must give a number from 0"),
        ("Tolerance: 6", "Tolerance: 2 - 5", "'2 - 5' is -3; it must give a number from 0"),
        ("Tolerance: 6", "Tolerance: 6\nBytes: -1", "'-1' is -1; it must give a number from 0"),
        ("  OpenCL: custom", "  Fortran: custom", "Source has no Fortran"),
        (
            "  OpenCL: custom_stencil.cl\n  CUDA: custom_stencil.cu",
            " {}",
            "Source names no file; give one for each language",
        ),
        ("Entry: stencil", "Entry: stencil\nLanguage: OpenCL", "Source says which languages there are; leave Language"),
        ("Entry: stencil", "Entry: stencil\nOptions: {OpenCl: [-w]}", "Options has no OpenCl; did you mean OpenCL?"),
        ("Entry: stencil", "Entry: stencil\nOptions: -w", "Options is -w, expected a list"),
        ("  GROUP_X: ", "  KernelLanguage: ", "a parameter cannot be called 'KernelLanguage'"),
        ("WorkGroup: [GROUP_X, GROUP_Y]", "WorkGroup: [1, 1, 1, 1]", "has 4 dimensions"),
        ("  WorkGroups:", "  Groups:", "neither WorkGroups nor WorkItems"),
        ("Entry: stencil", "Entry: sten-cil", "cannot be called"),
        ("Entry: stencil", "Entry: stencil\nEntry: twice", "Entry is given twice (first at"),
        ("Entry: stencil", "Entry: [", "not valid YAML"),
        ("Entry: stencil", "Entry: 2020-13-45", "cannot be called"),
        ("STAGED:   ", "Rows: &a [*a]\n  STAGED:   ", "an alias stands inside of what it names"),
    ],
)
def test_a_mistake_in_the_description_names_the_file_and_the_remedy(copied, old, new, message):
    with pytest.raises(UserError) as caught:
        type_of(edited(copied, old, new))
    assert caught.value.location.startswith(str(copied))
    assert message in str(caught.value)


ONE_SOURCE = "Source:                           # the device decides which is compiled\n"
ONE_SOURCE += "  OpenCL: custom_stencil.cl\n  CUDA: custom_stencil.cu\n"


@pytest.mark.parametrize(
    ("language_line", "able"), [("", "OpenCL"), ("Language: OpenCL\n", "OpenCL"), ("Language: CUDA\n", "CUDA")]
)
def test_one_file_is_in_the_language_that_is_named(copied, language_line, able):
    problem_type = type_of(edited(copied, ONE_SOURCE, f"Source: custom_stencil.cl\n{language_line}"))
    assert languages(problem_type) == (able,)
    assert tuning_space(problem_type)["KernelLanguage"].values == (able,)
    assert tuning_space(problem_type).defaults["KernelLanguage"] == able


def test_one_file_in_no_known_language_is_refused(copied):
    with pytest.raises(UserError, match="Language: Fortran is not supported; write the kernel in OpenCL or CUDA"):
        type_of(edited(copied, ONE_SOURCE, "Source: custom_stencil.cl\nLanguage: Fortran\n"))


@pytest.mark.parametrize(
    ("options", "opencl", "cuda"),
    [("[-DA, -DB]", {"-DA", "-DB"}, {"-DA", "-DB"}), ("{OpenCL: [-DA], CUDA: [-DB]}", {"-DA"}, {"-DB"})],
)
def test_options_are_for_every_compiler_or_for_the_one_that_is_named(copied, options, opencl, cuda):
    problem_type = type_of(edited(copied, "Entry: stencil", f"Entry: stencil\nOptions: {options}"))
    for kernel, options in ((CustomKernel(), opencl), (CustomCudaKernel(), cuda)):
        (module,) = kernel.modules(kernel.space(problem_type).defaults, problem_type)
        assert {option for option in module.options if "=" not in option} == options


def test_what_a_size_makes_negative_is_the_users_mistake_when_it_is_asked_for(copied):
    problem = Problem(type_of(edited(copied, "Flops: 6 * Rows * Columns", "Flops: Rows - Columns")), (3, 5))
    with pytest.raises(
        UserError, match=r"custom_stencil\.yaml:\d+: 'Rows - Columns' is -2; it must give a number from 0"
    ):
        CustomOperation().flops(problem)


def test_a_tuning_file_must_name_a_description_that_is_there(tmp_path):
    for fields in ({}, {"Kernel": "none.yaml"}, {"Kernel": 3}, {"Kernel": "x.yaml", "DataType": "s"}):
        with pytest.raises(UserError) as caught:
            CustomOperation().type_of(fields, lambda key: f"tuning.yaml:{key}", tmp_path)
        assert caught.value.location.startswith("tuning.yaml:")


JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["Rows", "in"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["Name", "Shape", "Values", "x"]), inner, max_size=3),
    ),
    max_leaves=5,
)


@cache
def example():
    return yaml.safe_load((EXAMPLES / STENCIL).read_text())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_a_description_holds_only_the_users_error_comes_out(copied, data):
    """Other ones in each run; test_file_fuzz changes descriptions, too, and a thousand of them in the thorough run."""
    raw = deepcopy(example())
    where = data.draw(st.sampled_from(list(raw)))
    if isinstance(raw[where], dict) and data.draw(st.booleans()):
        raw[where][data.draw(st.sampled_from(list(raw[where])))] = data.draw(JUNK)
    else:
        raw[where] = data.draw(JUNK)
    copied.write_text(yaml.safe_dump(raw))
    try:
        problem_type = type_of(copied)
        problem = Problem(problem_type, (3, 5)[: len(problem_type.indices)])
        CustomKernel().modules(config(problem_type), problem_type)
        if not list(CustomKernel().rejections(config(problem_type), problem_type, TARGET)):
            CustomKernel().plan(config(problem_type), problem, TARGET)
    except UserError:
        pass


@pytest.mark.opencl
@pytest.mark.parametrize("sizes", [(1, 1), (7, 5), (33, 70)])
@pytest.mark.parametrize(
    "values",
    [{}, {"STAGED": 1, "ITEM_X": 2, "ITEM_Y": 4}, {"GROUP_X": 32, "ITEM_X": 4}],
    ids=lambda values: "-".join(map(str, values)) or "defaults",
)
def test_the_example_computes_what_its_reference_says(
    run,
    sizes,
    values,
):
    problem_type = type_of(EXAMPLES / STENCIL)
    assert run(problem_type, config(problem_type, **values), sizes) <= 1


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AT(0, 1)", "AT(0, 0)"),
        ("AT(-1, 0)", "AT(-1, 1)"),
        ("row < rows && ", "row < rows - 1 && "),
        ("0.25f", "0.250001f"),
        ("first_column + x - 1", "first_column + x"),
    ],
)
def test_a_wrong_kernel_is_outside_the_bound(copied, run, old, new):
    edited(copied.with_name("custom_stencil.cl"), old, new)
    problem_type = type_of(copied)
    values = {"STAGED": 1} if old == "first_column + x - 1" else {}
    assert not run(problem_type, config(problem_type, **values), (33, 20)) <= 1


@pytest.fixture(scope="module")
def run():
    """Runs a configuration; the largest error over its bound."""
    try:
        device = open_device(choose("OpenCL"))
    except (UserError, LaunchError) as error:
        pytest.skip(f"no usable OpenCL device: {error}")
    operation, kernel = CustomOperation(), CustomKernel()

    def launch(problem_type, chosen, sizes):
        problem = replace(Problem(problem_type, sizes))
        binaries = [TOOLCHAINS["OpenCL"].compile(m, device.target) for m in kernel.modules(chosen, problem_type)]
        inputs = operation.inputs(problem, np.random.default_rng(7))
        buffers = {}
        for operand in operation.operands(problem):
            content = inputs.get(operand.name, np.full(operand.storage_elements, np.nan, operand.dtype))
            buffers[operand.name] = device.allocate(content.nbytes)
            device.write(buffers[operand.name], content.view(np.uint8))
        plan = kernel.plan(chosen, problem, device.target)
        device.prepare(plan, [device.load(binary) for binary in binaries], buffers, None).enqueue()
        device.synchronize()
        expected = operation.reference(problem, inputs)["output"]
        got = device.read(buffers["output"], 4 * expected.value.size).view(np.float32).reshape(expected.value.shape)
        device.release(*buffers.values())
        return float(np.max(np.abs(got - expected.value) / expected.bound))

    return launch
