"""A described kernel in Triton: modules and launches as data, rejections, and mistakes with lines and remedies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuda_runner import H200
from described import edited, type_of
from described_triton import written
from tunesmith import session
from tunesmith.kernels import OPEN, family_for, languages, tuning_space
from tunesmith.kernels.custom import CustomCudaKernel, CustomTritonKernel
from tunesmith.problems.custom import CustomOperation
from tunesmith.protocol import Fork
from tunesmith.records import (
    CompiledFacts,
    Configuration,
    OperandArgument,
    Problem,
    ScalarArgument,
    UserError,
)
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.spaces import ActsAt

FAMILY = CustomTritonKernel()
MI300 = replace(H200, api="HIP", name="MI300", architecture="gfx942", sub_group_size=64, local_memory_bytes=65536)


@pytest.fixture
def scaled(tmp_path):
    return written(tmp_path)


def config(problem_type, **values):
    return FAMILY.space(problem_type).defaults | Configuration(values)


def module_of(problem_type, **values):
    (module,) = FAMILY.modules(config(problem_type, **values), problem_type)
    return module


def launch_of(problem_type, sizes=(5, 300), target=H200, facts=(), **values):
    (launch,) = FAMILY.plan(config(problem_type, **values), Problem(problem_type, sizes), target, facts).steps
    return launch


def reasons(problem_type, sizes=(64, 64), target=H200, **values):
    chosen = config(problem_type, **values)
    always = list(FAMILY.rejections(chosen, problem_type, target))
    found = always or list(FAMILY.rejections_for(chosen, Problem(problem_type, sizes), target))
    return [rejection.reason for rejection in found]


def in_function(description, old, new):
    edited(description.with_name("scaled.py"), old, new)
    return description


def test_a_module_holds_the_whole_text_and_all_that_triton_must_know(scaled):
    module = module_of(type_of(scaled), BLOCK=64)
    assert (module.language, module.entries, module.python) == ("Triton", ("scaled",), "")
    assert module.text == scaled.with_name("scaled.py").read_text()
    types = (("x", "*fp32"), ("y", "*fp32"), ("columns", "i32"), ("factor", "fp32"), ("BLOCK", "constexpr"))
    assert dict(module.constants) == {
        "signature": types,
        "constexprs": (("BLOCK", 64),),
        "divisible_by_16": ("x", "y"),
        "file": "scaled.py",
        "num_warps": 2,
    }


def test_a_launch_counts_programs_and_its_work_items_follow_from_the_warps(scaled):
    problem_type = type_of(scaled)
    launch = launch_of(problem_type, num_warps=4)
    assert (launch.grid, launch.work_group) == ((3, 5, 1), (128, 1, 1))
    numbers = (ScalarArgument(300, "int32"), ScalarArgument(1.5, "float32"))
    assert launch.arguments == (OperandArgument("x"), OperandArgument("y"), *numbers)
    assert launch_of(problem_type, target=MI300, num_warps=4).work_group == (256, 1, 1), "64 work-items in a warp"
    compiled = [CompiledFacts("scaled", max_work_group_size=384)]
    assert launch_of(problem_type, facts=compiled).work_group == (384, 1, 1), "Triton may add warps"


def test_without_num_warps_a_program_has_four(scaled):
    problem_type = type_of(edited(scaled, "  num_warps: {Values: [1, 2, 4, 8], Default: 2}\n", ""))
    assert module_of(problem_type).constants["num_warps"] == 4
    assert launch_of(problem_type).work_group == (128, 1, 1)


def test_a_programs_work_groups_form_a_cluster_along_x(scaled):
    problem_type = type_of(edited(scaled, "Arguments:", "  num_ctas: {Values: [1, 2]}\nArguments:"))
    assert launch_of(problem_type, num_ctas=2).grid == (6, 5, 1)
    assert module_of(problem_type, num_ctas=2).constants["num_ctas"] == 2
    assert reasons(problem_type, num_ctas=2) == []
    for target in (replace(H200, architecture="sm_89"), MI300):
        assert reasons(problem_type, target=target, num_ctas=2) == ["clusters"]
        assert reasons(problem_type, target=target, num_ctas=1) == []


def test_an_option_is_a_constant_too_if_the_function_has_a_parameter_of_that_name(scaled):
    edited(scaled, "Arguments:", "  num_stages: {Values: [1, 2]}\n  maxnreg: {Values: [0, 64]}\nArguments:")
    problem_type = type_of(in_function(scaled, "BLOCK: tl.constexpr", "BLOCK: tl.constexpr, num_stages: tl.constexpr"))
    constants = module_of(problem_type, num_stages=2, maxnreg=64).constants
    assert constants["constexprs"] == (("BLOCK", 128), ("num_stages", 2))
    assert (constants["num_stages"], constants["maxnreg"]) == (2, 64)
    assert "maxnreg" not in module_of(problem_type, maxnreg=0).constants, "0 means no limit"


def test_a_described_parameter_is_a_constant_whether_it_is_annotated_or_not(scaled):
    before = module_of(type_of(scaled)).constants
    assert module_of(type_of(in_function(scaled, "BLOCK: tl.constexpr", "BLOCK"))).constants == before


def test_a_parameter_that_only_the_launch_uses_shares_its_programs(scaled):
    edited(scaled, "Arguments:", "  SPLIT: {Values: [1, 2], Doc: programs for a block}\nArguments:")
    problem_type = type_of(edited(scaled, 'BLOCK)", Rows]', 'BLOCK)", Rows * SPLIT]'))
    acts = {parameter.name: parameter.when for parameter in FAMILY.space(problem_type)}
    assert (acts["SPLIT"], acts["BLOCK"], acts["num_warps"]) == (ActsAt.LAUNCH, ActsAt.COMPILE, ActsAt.COMPILE)
    assert module_of(problem_type, SPLIT=1) == module_of(problem_type, SPLIT=2)
    assert launch_of(problem_type, SPLIT=2).grid == (3, 10, 1)
    edited(scaled, "  - {Name: factor", "  - {Name: PARTS, DataType: int32, Value: SPLIT}\n  - {Name: factor")
    problem_type = type_of(in_function(scaled, "BLOCK: tl.constexpr", "BLOCK: tl.constexpr, PARTS: tl.constexpr"))
    assert {parameter.when for parameter in FAMILY.space(problem_type)} == {ActsAt.COMPILE}, "PARTS is in the program"
    assert module_of(problem_type, SPLIT=1) != module_of(problem_type, SPLIT=2)


@pytest.mark.parametrize(("value", "constant"), [("2 * BLOCK", 256), ("-3", -3), ("BLOCK // num_warps", 64)])
def test_a_number_that_names_no_size_may_be_a_constant(scaled, value, constant):
    edited(scaled, "  - {Name: factor", f"  - {{Name: WIDTH, DataType: int32, Value: {value}}}\n  - {{Name: factor")
    problem_type = type_of(in_function(scaled, "BLOCK: tl.constexpr", "BLOCK: tl.constexpr, WIDTH: 'tl.constexpr'"))
    assert dict(module_of(problem_type).constants["constexprs"]) == {"BLOCK": 128, "WIDTH": constant}
    assert len(launch_of(problem_type).arguments) == 4, "a constant is not passed"


def test_a_constant_of_floating_point_and_defaults_of_the_function(scaled):
    in_function(scaled, "factor, BLOCK: tl.constexpr", "factor: tl.constexpr, BLOCK, WORD: tl.constexpr = 'even'")
    problem_type = type_of(scaled)
    assert dict(module_of(problem_type).constants["constexprs"]) == {"factor": 1.5, "BLOCK": 128, "WORD": "even"}


def test_what_a_device_cannot_launch_is_rejected(scaled):
    edited(scaled, "[1, 2, 4, 8]", "[1, 2, 4, 8, 16, 32, 64]")
    problem_type = type_of(scaled)
    assert reasons(problem_type, num_warps=32) == []
    assert reasons(problem_type, num_warps=64) == ["work-group size"]
    assert reasons(problem_type, target=MI300, num_warps=32) == ["work-group size"]
    assert reasons(problem_type, (1 << 16, 64)) == ["grid"]
    facts = [CompiledFacts("scaled", local_bytes=H200.local_memory_bytes + 1)]
    assert [r.reason for r in FAMILY.rejections_compiled(config(problem_type), facts, H200)] == ["local memory"]
    assert list(FAMILY.rejections_compiled(config(problem_type), [CompiledFacts("scaled")], H200)) == []


def test_constraints_reject_as_in_other_languages(scaled):
    edited(
        scaled, "Arguments:", "Constraints:\n  - {Require: Columns % BLOCK == 0, Reason: part of a block}\nArguments:"
    )
    assert reasons(type_of(scaled), (4, 128)) == []
    assert reasons(type_of(scaled), (4, 100)) == ["part of a block"]


def test_a_number_that_is_promised_to_be_divisible_rejects_problems_where_it_is_not(scaled):
    problem_type = type_of(edited(scaled, "Grid:", "DivisibleBy16: [columns]\nGrid:"))
    assert module_of(problem_type).constants["divisible_by_16"] == ("x", "y", "columns")
    assert reasons(problem_type, (4, 160)) == []
    assert reasons(problem_type, (4, 168)) == ["divisibility"]


def test_the_small_problem_keeps_sizes_of_numbers_that_are_promised_to_be_divisible(scaled):
    edited(scaled, "Value: Columns", "Value: Columns - 8")
    problem = Problem(type_of(edited(scaled, "Grid:", "DivisibleBy16: [columns]\nGrid:")), (1000, 1000))
    assert CustomOperation().small(problem).sizes == (64, 1000)


IMPORTS = """
import sys
from tunesmith.kernels import KERNELS
from tunesmith.records import Problem, ProblemType
from cuda_runner import H200
family, problem = KERNELS["CustomTriton"], Problem(ProblemType.from_json(sys.stdin.read()), (5, 300))
config = family.space(problem.type).defaults
family.plan(config, problem, H200)
print(family.modules(config, problem.type)[0].digest(), "triton" in sys.modules)
"""


def test_another_process_needs_the_type_and_neither_file_nor_triton(scaled):
    problem_type = type_of(scaled)
    for path in scaled.parent.iterdir():
        path.unlink()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", IMPORTS]
    text = problem_type.to_json()
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, cwd=scaled.parent)
    assert done.stdout.split() == [module_of(problem_type).digest(), "False"], done.stderr


# Together with other languages.


def with_cuda(description):
    """The description with a CUDA source, whose work-groups have one work-item for each element of a block."""
    description.with_name("scaled.cu").write_text('extern "C" __global__ void scaled() {}')
    edited(description, "{Triton: scaled.py}", "{Triton: scaled.py, CUDA: scaled.cu}")
    return edited(description, "Grid:", "WorkGroup: [BLOCK]\nGrid:")


def test_one_description_in_two_languages_has_one_space_and_an_open_language(scaled):
    problem_type = type_of(with_cuda(scaled))
    assert languages(problem_type) == ("CUDA", "Triton")
    space = tuning_space(problem_type)
    assert space.defaults["KernelLanguage"] == OPEN
    assert family_for("Custom", space.defaults | {"KernelLanguage": "Triton"}).name == "CustomTriton"
    assert launch_of(problem_type).work_group == (64, 1, 1), "of Triton's warps, not of the description's WorkGroup"


FORK = """
BenchmarkProblems:
  - - OperationType: Custom
      Kernel: scaled.yaml
    - ForkParameters:
        - KernelLanguage: [CUDA, Triton]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [64, 64]
"""


@pytest.mark.parametrize(
    ("tuning", "kernels"),
    [
        (FORK, {"CustomCuda", "CustomTriton"}),
        (FORK.replace("KernelLanguage: [CUDA, Triton]", "BLOCK: [64, 128]"), {"CustomCuda"}),
    ],
)
def test_a_gpu_takes_cuda_unless_a_fork_names_both_languages(scaled, tmp_path, monkeypatch, tuning, kernels):
    with_cuda(scaled)
    (tmp_path / "tuning.yaml").write_text(tuning)
    monkeypatch.setattr("tunesmith.session.tuning_file.file.choose", lambda *_, **__: H200)
    made = session.plan(tmp_path / "tuning.yaml", calibrate=False)
    (group,) = made.groups
    (fork,) = (step for step in group.phases.steps if isinstance(step, Fork))
    judge = ConfigurationOracle(group.phases.problem_type, H200)
    assert {judge.family(group.phases.start | choice).name for choice in fork.choices} == kernels


def test_what_is_for_other_languages_does_not_matter_in_triton(scaled):
    """Local memory, the limits of work-groups, and parameters that only the other source uses."""
    edited(with_cuda(scaled), "Grid:", "LocalMemory: 1000000\nGrid:")
    edited(scaled, "  - {Name: columns", "  - {Name: shared, LocalBytes: 4000000}\n  - {Name: columns")
    edited(scaled, "[64, 128, 256], Default: 128}", "[64, 128, 4096], Default: 128}\n  ITEMS: {Values: [1, 2]}")
    problem_type = type_of(scaled)
    assert reasons(problem_type, BLOCK=4096) == []
    assert len(launch_of(problem_type).arguments) == 4
    assert module_of(problem_type, ITEMS=1) == module_of(problem_type, ITEMS=2)
    cuda = CustomCudaKernel()
    assert len(list(cuda.rejections(cuda.space(problem_type).defaults | {"BLOCK": 4096}, problem_type, H200))) == 2


def test_a_grid_of_work_items_launches_as_many_programs_as_the_other_languages_have_work_groups(scaled):
    edited(with_cuda(scaled), 'WorkGroups: ["ceil_div(Columns, BLOCK)", Rows]', "WorkItems: [Columns, Rows]")
    assert launch_of(type_of(scaled)).grid == (3, 5, 1)


def test_a_source_that_is_one_file_may_be_in_triton(scaled):
    before = module_of(type_of(scaled))
    edited(scaled, "Source: {Triton: scaled.py}", "Source: scaled.py\nLanguage: Triton")
    assert module_of(type_of(scaled)) == before


# Mistakes. Each is answered with the line of the description that has to do with it.


MISTAKES = [
    # (file, old, new, start of the description's line, message)
    ("yaml", "Entry: scaled", "Entry: scale", "Entry", "scaled.py has no function scale at its top level; did you me"),
    ("yaml", "Entry: scaled", "Entry: other", "Entry", "it has times, scaled"),
    ("py", "def times", "def times(", "Source", "scaled.py:6: "),
    ("py", "@triton.jit\ndef scaled", "def scaled", "Entry", "scaled (scaled.py:10) is no jit function; write @triton"),
    ("py", "@triton.jit\ndef scaled", "@triton.autotune([], key=[])\n@triton.jit\ndef scaled", "Entry",
     "@triton.autotune (scaled.py:10) hides the jit function scaled; remove the decorator"),
    ("py", "factor, BLOCK", "factor, *others, BLOCK", "Entry", "scaled (scaled.py:11) takes *others"),
    ("py", "BLOCK: tl.constexpr", "BLOCK: tl.constexpr, WIDTH: tl.constexpr", "Entry",
     "nothing gives the constexpr WIDTH of scaled (scaled.py:11); add WIDTH to Parameters"),
    ("py", "factor, BLOCK", "factor, rows, BLOCK", "  - {Name: x",
     "no argument is called rows, as scaled (scaled.py:11) asks; add rows to Arguments"),
    ("py", "y, columns,", "y, column,", "  - {Name: columns", "has no parameter columns; did you mean column?"),
    ("py", "y, columns, factor", "columns, y, factor", "  - {Name: y", "another order than the parameters, from y on; "
     "scaled (scaled.py:11) takes x, columns, y, factor, in this order"),
    ("py", "columns, factor", "columns: tl.constexpr, factor", "  - {Name: columns",
     "columns is a constexpr (scaled.py:11) and depends on Columns: each value needs its own program; remove"),
    ("py", "scaled(x, y", "scaled(x: tl.constexpr, y", "  - {Name: x", "which cannot be memory"),
    ("yaml", "Name: factor", "Name: BLOCK", "  - {Name: BLOCK", "BLOCK is an argument and a parameter; rename one"),
    ("yaml", "Arguments:", "  UNUSED: {Values: [1, 2]}\nArguments:", "  UNUSED",
     "nothing uses UNUSED, and scaled (scaled.py:11) has no parameter of that name; add `UNUSED: tl.constexpr`"),
    ("yaml", "[1, 2, 4, 8]", "[1, 2, 3]", "  num_warps", "num_warps cannot be 3; give a power of two up to 64"),
    ("yaml", "Arguments:", "  num_stages: {Values: [0]}\nArguments:", "  num_stages", "give a whole number from 1"),
    ("yaml", "Arguments:", "  num_ctas: {Values: [16]}\nArguments:", "  num_ctas", "give a power of two up to 8"),
    ("yaml", "Arguments:", "  maxnreg: {Values: [many]}\nArguments:", "  maxnreg", "maxnreg cannot be many; give a"),
    ("yaml", "Grid:", "DivisibleBy16: [column]\nGrid:", "DivisibleBy16", "column is no whole number among the Argu"),
    ("yaml", "Grid:", "DivisibleBy16: [factor]\nGrid:", "DivisibleBy16", "among the Arguments; it can name columns"),
    ("yaml", "Grid:", "DivisibleBy16: columns\nGrid:", "DivisibleBy16", "DivisibleBy16 is columns, expected a list"),
    ("yaml", "Grid:", "Options: [--use_fast_math]\nGrid:", "Options", "Triton's compiler has no command line"),
    ("yaml", "Grid:", "LocalMemory: 64\nGrid:", "LocalMemory", "Triton allocates local memory itself; leave LocalMem"),
    ("yaml", "  - {Name: columns", "  - {Name: tile, LocalBytes: 64}\n  - {Name: columns", "  - {Name: tile",
     "leave the argument tile out"),
    ("yaml", "{WorkGroups:", "{WorkItems:", "Grid", "no work-items to count; count Triton's programs: {WorkGroups"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "line", "message"), MISTAKES, ids=[row[4][:40] for row in MISTAKES])
def test_a_mistake_names_the_line_and_the_remedy(scaled, file, old, new, line, message):
    edited(scaled.with_name(f"scaled.{file}"), old, new)
    with pytest.raises(UserError) as caught:
        type_of(scaled)
    number = next(n for n, text in enumerate(scaled.read_text().splitlines(), 1) if text.startswith(line))
    (error,) = (error for error in caught.value.errors if message in str(error))
    assert error.location == f"{scaled}:{number}"


def test_several_mistakes_are_told_together(scaled):
    edited(scaled, "Arguments:", "  UNUSED: {Values: [1, 2]}\nArguments:")
    with pytest.raises(UserError) as caught:
        type_of(in_function(scaled, "factor, BLOCK", "rows, BLOCK"))
    whats = [error.what for error in caught.value.errors]
    patterns = ["nothing uses UNUSED", "no argument is called rows", ".* has no parameter factor"]
    assert len(whats) == len(patterns)
    assert all(any(re.match(pattern, what) for what in whats) for pattern in patterns)


JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["x", "Rows"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["Name", "Values", "Triton", "WorkItems", "x"]), inner, max_size=3),
    ),
    max_leaves=5,
)
LINES = st.sampled_from(
    ["", "def scaled(", "@jit", "def scaled(x, /, y=[], *, z: constexpr = -1): pass", "\0", "((((" * 90]
)


@settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_the_files_hold_only_the_users_error_comes_out(tmp_path, data):
    description = written(tmp_path)
    raw = yaml.safe_load(description.read_text())
    raw[data.draw(st.sampled_from([*raw, "DivisibleBy16", "Options", "LocalMemory", "WorkGroup"]))] = data.draw(JUNK)
    description.write_text(yaml.safe_dump(raw))
    if data.draw(st.booleans()):
        edited(tmp_path / "scaled.py", "def scaled(", data.draw(LINES) + "\ndef scaled(")
    try:
        problem_type = type_of(description)
        module_of(problem_type)
        if not reasons(problem_type):
            launch_of(problem_type)
    except UserError:
        pass


def test_only_a_kernel_in_nothing_but_triton_needs_no_work_group_and_only_triton_takes_promises(copied, scaled):
    edited(with_cuda(scaled), "WorkGroup: [BLOCK]\n", "")
    with pytest.raises(UserError, match=r"scaled\.yaml:2: .* has no WorkGroup; only a kernel in nothing but Triton"):
        type_of(scaled)
    edited(copied, "Entry: stencil", "Entry: stencil\nDivisibleBy16: [rows]")
    with pytest.raises(UserError, match="DivisibleBy16 is for a source in Triton; leave DivisibleBy16 out"):
        type_of(copied)
