"""A described kernel in Triton is compiled from its text alone, and computes what its reference says."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import tunesmith
from cuda_runner import H200, cuda_device, toolchain, wrong_on_gpu
from described import EXAMPLES, edited, type_of
from described_triton import written
from triton_on_host import described_wrong_on_host
from tunesmith import session
from tunesmith.kernels.custom import CustomTritonKernel
from tunesmith.problems.custom import CustomOperation
from tunesmith.records import Configuration, Module, Problem
from tunesmith.toolchains import BinaryCache, CompileError, compile_cached
from tunesmith.toolchains.triton import function_of

FAMILY = CustomTritonKernel()
MI300 = replace(H200, api="HIP", name="MI300", architecture="gfx942", sub_group_size=64, local_memory_bytes=65536)
EXAMPLE = EXAMPLES / "softmax_triton_kernel.yaml"
VALUES = (
    {},
    {"BLOCK": 128, "ROWS": 4, "num_warps": 1, "num_stages": 1},
    {"BLOCK": 4096, "num_warps": 16, "num_stages": 3},
)


@pytest.fixture
def scaled(tmp_path):
    return written(tmp_path)


def config(problem_type, values):
    return FAMILY.space(problem_type).defaults | Configuration(values)


def module_of(problem_type, **values):
    (module,) = FAMILY.modules(config(problem_type, values), problem_type)
    return module


def compiled(module, target=H200):
    return toolchain("Triton").compile(module, target)


def in_function(description, old, new):
    edited(description.with_name("scaled.py"), old, new)
    return description


@pytest.mark.parametrize("target", [H200, MI300], ids=lambda target: target.architecture)
@pytest.mark.parametrize("values", VALUES, ids=str)
def test_the_example_compiles_for_gpus_that_are_not_here(target, values):
    problem_type = type_of(EXAMPLE)
    chosen = config(problem_type, values)
    binary = compiled(FAMILY.modules(chosen, problem_type)[0], target)
    assert binary.payload.startswith(b"\x7fELF")
    assert [fact.entry for fact in binary.facts] == ["softmax"]
    assert binary.metadata["threads"] == chosen.integer("num_warps") * target.sub_group_size
    assert not list(FAMILY.rejections_compiled(chosen, binary.facts, target))


COMPILES = """
import sys
from cuda_runner import H200
from tunesmith.kernels import KERNELS
from tunesmith.records import ProblemType
from tunesmith.toolchains import TOOLCHAINS
family, problem_type = KERNELS["CustomTriton"], ProblemType.from_json(sys.stdin.read())
(module,) = family.modules(family.space(problem_type).defaults, problem_type)
sys.stdout.write(TOOLCHAINS["Triton"].compile(module, H200).payload.hex())
"""


def test_another_process_makes_the_same_program_without_the_users_file(scaled):
    problem_type = type_of(scaled)
    for path in scaled.parent.iterdir():
        path.unlink()
    here = compiled(module_of(problem_type)).payload.hex()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command, text = [sys.executable, "-c", COMPILES], problem_type.to_json()
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, cwd=scaled.parent)
    assert done.stdout == here, done.stderr


def test_texts_with_the_same_names_are_different_functions(scaled):
    first = module_of(type_of(scaled))
    second = module_of(type_of(in_function(scaled, "values * factor", "values + factor")))
    payloads = [compiled(module).payload for module in (first, second, first)]
    assert payloads[0] == payloads[2] != payloads[1]


NUMBERS = ("float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.fixture
def typed(scaled):
    """A kernel that adds a number to an array, for every data type."""
    arguments = "".join(
        f"  - {{Name: a_{dtype}, DataType: {dtype}, Shape: [Rows], Role: inout}}\n"
        f"  - {{Name: n_{dtype}, DataType: {dtype}, Value: 3}}\n"
        for dtype in NUMBERS
    )
    edited(scaled, "Arguments:\n", f"Arguments:\n{arguments}")
    names = ", ".join(f"a_{dtype}, n_{dtype}" for dtype in NUMBERS)
    sums = "".join(f"        tl.store(a_{dtype} + row, tl.load(a_{dtype} + row) + n_{dtype})\n" for dtype in NUMBERS)
    body = f"    row = tl.program_id(1)\n    if tl.program_id(0) == 0:\n{sums}    column = tl"
    in_function(in_function(scaled, "scaled(x", f"scaled({names}, x"), "    column = tl", body)
    outputs = ", ".join(f"'a_{dtype}': 3 + arrays['a_{dtype}']" for dtype in NUMBERS)
    edited(scaled.with_name("reference.py"), "{'y'", f"{{{outputs}, 'y'")
    return type_of(scaled)


@pytest.mark.parametrize("target", [H200, MI300], ids=lambda target: target.architecture)
def test_arrays_and_numbers_of_every_data_type_compile(typed, target):
    assert compiled(module_of(typed), target).payload


def test_a_promise_of_divisibility_gives_wide_loads_in_a_matrix(scaled, monkeypatch):
    """Each row then begins at a multiple of 16 elements."""
    assembly = []
    toolchain("Triton")
    import triton

    compile_ = triton.compile

    def recorded(*arguments, **options):
        result = compile_(*arguments, **options)
        assembly.append(result.asm["ptx"])
        return result

    monkeypatch.setattr(triton, "compile", recorded)
    in_function(scaled, "mask=column < columns)\n    tl", "mask=tl.max_constancy(column < columns, 4))\n    tl")
    compiled(module_of(type_of(scaled), num_warps=1))
    compiled(module_of(type_of(edited(scaled, "Grid:", "DivisibleBy16: [columns]\nGrid:")), num_warps=1))
    assert ["ld.global.v4" in text for text in assembly] == [False, True]


def test_a_cluster_needs_a_triton_whose_programs_name_its_size(scaled):
    problem_type = type_of(edited(scaled, "Arguments:", "  num_ctas: {Values: [1, 2]}\nArguments:"))
    toolchain("Triton")
    import triton

    if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 6):
        assert compiled(module_of(problem_type, num_ctas=2)).payload
        return
    with pytest.raises(CompileError, match="or a newer Triton"):
        compiled(module_of(problem_type, num_ctas=2))


# The compiler's and Python's messages name the line of the user's file.


@pytest.mark.parametrize(
    ("old", "new", "reason", "messages"),
    [
        (
            "values * factor",
            "values * missing",
            "source rejected",
            ["scaled.py:15: CompilationError", "scaled.py:7: CompilationError", "missing is not defined"],
        ),
        ("offset = tl", "tl.static_assert(BLOCK > 128)\n    offset = tl", "source rejected", ["scaled.py:13: "]),
        ("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK - 1)", "source rejected", ["scaled.py:12: ", "power of 2"]),
        ("import triton\n", "import triton\nimport missing\n", "source rejected", ["scaled.py:2: ModuleNotFoundError"]),
        ("import triton\n", "import triton\nraise SystemExit(3)\n", "source rejected", ["scaled.py:2: SystemExit: 3"]),
    ],
)
def test_a_mistake_in_the_kernel_is_a_compile_error_with_the_line_of_the_file(scaled, old, new, reason, messages):
    problem_type = type_of(in_function(scaled, old, new))
    with pytest.raises(CompileError) as caught:
        compiled(module_of(problem_type))
    assert caught.value.reason == reason
    assert [message for message in messages if message not in caught.value.log] == []


def test_a_traceback_ends_with_the_users_file(scaled):
    toolchain("Triton")
    name = function_of(module_of(type_of(scaled))).fn.__code__.co_filename
    assert name.endswith("/scaled.py")
    assert name != "scaled.py"


# Binaries on disk.


@pytest.mark.parametrize(
    ("imports", "is_kept"),
    [
        ("", True),
        ("import math, functools", True),
        ("from triton.language.extra import libdevice", True),
        ("from __future__ import annotations", True),
        ("import numpy", False),
        ("from helpers import times", False),
        ("from . import helpers", False),
        ("import importlib.util", False),
        ("helpers = __import__('helpers')", False),
        ("def later():\n    import helpers", False),
    ],
)
def test_only_what_imports_triton_and_the_standard_library_is_kept(scaled, tmp_path, imports, is_kept):
    text = scaled.with_name("scaled.py").read_text()
    module = Module("Triton", f"{imports}\n{text}", ("scaled",))
    assert toolchain("Triton").keeps(module) is is_kept


def test_a_program_is_found_on_disk_by_the_next_process(scaled, tmp_path, monkeypatch):
    module, folder = module_of(type_of(scaled)), tmp_path / "cache"
    compiler = toolchain("Triton")
    first = compile_cached(module, H200, BinaryCache(folder, H200))
    monkeypatch.setattr(type(compiler), "compile", None)
    assert compile_cached(module, H200, BinaryCache(folder, H200)) == first


# Results: in Triton's interpreter on the host, and on a GPU.


@pytest.fixture(scope="module")
def wrong_on_host(triton_interpreter):
    """wrong_on_host(problem type, values, sizes): what is wrong with the result, in a process that interprets."""

    def ask(problem_type, values, sizes):
        problem = Problem(problem_type, sizes)
        return triton_interpreter.submit(described_wrong_on_host, config(problem_type, values), problem).result()

    return ask


@pytest.mark.parametrize("values", [{"BLOCK": 128, "num_warps": 1}, {"BLOCK": 512, "ROWS": 4}], ids=str)
@pytest.mark.parametrize("sizes", [(1, 1), (7, 333), (5, 1024)])
def test_the_example_is_right_in_the_interpreter(wrong_on_host, values, sizes):
    assert wrong_on_host(type_of(EXAMPLE), values, sizes) == []


@pytest.mark.parametrize(
    ("old", "new"), [("column < columns, other", "column < columns - 1, other"), ("(values - largest)", "(values)")]
)
def test_a_wrong_kernel_is_noticed_in_the_interpreter(wrong_on_host, tmp_path, old, new):
    for path in (*EXAMPLES.glob("softmax_triton*"), EXAMPLES / "softmax.py"):
        (tmp_path / path.name).write_text(path.read_text())
    edited(tmp_path / "softmax_triton.py", old, new)
    assert wrong_on_host(type_of(tmp_path / EXAMPLE.name), {}, (5, 300)) == ["y"]


def test_constants_by_value_and_options_that_are_constants_reach_the_function(wrong_on_host, scaled):
    edited(scaled, "  - {Name: factor", "  - {Name: THREE, DataType: int32, Value: 6 // num_warps}\n  - {Name: factor")
    in_function(scaled, "BLOCK: tl.constexpr):", "BLOCK: tl.constexpr, THREE: tl.constexpr, num_warps: tl.constexpr):")
    in_function(scaled, "mes(values, factor), mask", "mes(values, factor * THREE * num_warps / 6), mask")
    assert wrong_on_host(type_of(scaled), {}, (3, 300)) == []


@pytest.mark.gpu
@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("sizes", [(1, 1), (7, 333), (5, 5000), (3, 64)])
def test_the_example_is_right_on_a_gpu(values, sizes):
    problem_type = type_of(EXAMPLE)
    assert wrong_on_gpu(FAMILY, config(problem_type, values), Problem(problem_type, sizes)) == []


@pytest.mark.gpu
@pytest.mark.parametrize("values", [{"num_ctas": 1}, {"num_ctas": 2}, {"num_ctas": 4, "num_warps": 4}], ids=str)
def test_clusters_promises_and_limits_of_registers_are_right_on_a_gpu(scaled, values):
    edited(scaled, "Arguments:", "  num_ctas: {Values: [1, 2, 4]}\n  maxnreg: {Values: [64, 0]}\nArguments:")
    problem_type = type_of(edited(scaled, "Grid:", "DivisibleBy16: [columns]\nGrid:"))
    assert wrong_on_gpu(FAMILY, config(problem_type, values), Problem(problem_type, (50, 1008))) == []


@pytest.mark.gpu
def test_arrays_and_numbers_of_every_data_type_are_right_on_a_gpu(typed):
    assert wrong_on_gpu(FAMILY, config(typed, {}), Problem(typed, (40, 300))) == []


TUNING = """
GlobalParameters: {Noise: 0.2, MaximumSamples: 10, SamplingSeconds: 0.05, WarmUpSeconds: 0.05, ConfirmBlocks: 6}
BenchmarkProblems:
  - - OperationType: Custom
      Kernel: scaled.yaml
    - ForkParameters:
        - BLOCK: [64, 128, 256]
      BenchmarkForkParameters:
        - num_warps: [1, 4]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [64, 1000]
            - Exact: [500, 333]
LibraryLogic:
"""


@pytest.mark.gpu
def test_a_kernel_is_tuned_and_its_logic_alone_launches_it_on_tensors(scaled, tmp_path):
    """A configuration that does not compile is a result, and no harm to the others."""
    toolchain("Triton")
    cuda_device()
    torch = pytest.importorskip("torch")
    in_function(scaled, "offset = tl", "tl.static_assert(BLOCK > 64)\n    offset = tl")
    (tmp_path / "tuning.yaml").write_text(TUNING)
    outcome = session.tune(tmp_path / "tuning.yaml", tmp_path / "run", device="CUDA")
    assert len(outcome.logic_files) == 1
    (group,) = outcome.plan.groups
    winners = [group.measure.oracle.solution(decision.winner) for decision in group.result.decisions.values()]
    assert {winner.kernel for winner in winners} == {"CustomTriton"}
    assert 64 not in {winner.configuration["BLOCK"] for winner in winners}
    for path in tmp_path.glob("scaled.*"):
        path.unlink()
    with tunesmith.load(tmp_path / "run" / "logic") as library:
        for shape in ((64, 1000), (77, 130)):
            x = torch.rand(shape, device="cuda")
            assert torch.allclose(library.launch("scaled", x=x), 1.5 * x)


@pytest.mark.gpu
@pytest.mark.slow
def test_the_example_is_tuned_on_a_gpu(tmp_path):
    toolchain("Triton")
    cuda_device()
    torch = pytest.importorskip("torch")
    outcome = session.tune(EXAMPLES / "softmax_triton.yaml", tmp_path / "run", device="CUDA", max_size=1024)
    assert not outcome.failed
    with tunesmith.load(tmp_path / "run" / "logic") as library:
        x = torch.rand((1024, 768), device="cuda") * 8 - 4
        right = torch.softmax(x.double(), dim=1)
        assert ((library.launch("softmax_triton", x=x) / right - 1).abs() < 1e-5).all()


def test_the_examples_reference_is_that_of_the_other_languages():
    problem = Problem(type_of(EXAMPLE), (2, 3))
    ones = np.ones(6, np.float32)
    assert np.allclose(CustomOperation().reference(problem, {"x": ones})["y"].value, 1 / 3)
