"""A kernel as a user writes it from docs/custom-kernels.md: right in both languages, tuned, and its logic shipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from cuda_runner import H200, cuda_device, toolchain, wrong_on_gpu
from described import EXAMPLES, edited, type_of
from opencl_runner import opencl_device, programs
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.kernels.custom import CustomCudaKernel, CustomKernel
from tunesmith.problems import OPERATIONS
from tunesmith.records import Launch, Problem
from tunesmith.session.tuning_file import tune
from verified import verify

SIZES = ((1, 1), (3, 64), (5, 333), (7, 1000), (2, 5000))
VALUES = (
    {},
    {"GROUP": 1, "ITEMS": 1},
    {"GROUP": 8, "ITEMS": 16, "WIDTH": 2},
    {"GROUP": 256, "ITEMS": 4, "WIDTH": 4},
)
QUICK = (
    "GlobalParameters: {Noise: 0.2, MaximumSamples: 10, SamplingSeconds: 0.05, WarmUpSeconds: 0.05, ConfirmBlocks: 6}\n"
)


@pytest.fixture
def softmax(tmp_path):
    """The example's description with its files, to be edited or to disappear."""
    return copied_to(tmp_path)


def copied_to(folder):
    for path in EXAMPLES.glob("softmax*"):
        shutil.copy(path, folder)
    return folder / "softmax_kernel.yaml"


def config(problem_type, values):
    return CustomKernel().space(problem_type).defaults | values


def wrong(problem_type, values, sizes):
    """What the bench finds wrong on the OpenCL device, guard bands included."""
    device, operation, kernel = opencl_device(), OPERATIONS["Custom"], CustomKernel()
    problem, chosen = Problem(problem_type, sizes), config(problem_type, values)
    inputs = operation.inputs(problem, np.random.default_rng(7))
    case = VerificationCase(operation.operands(problem), inputs, operation.reference(problem, inputs))
    loaded = programs(kernel, chosen, problem_type, device.target)
    return verify(device, loaded, kernel.plan(chosen, problem, device.target), case)


def reasons(problem_type, values, sizes):
    kernel, chosen, problem = CustomKernel(), config(problem_type, values), Problem(problem_type, sizes)
    found = [*kernel.rejections(chosen, problem_type, H200), *kernel.rejections_for(chosen, problem, H200)]
    return [rejection.reason for rejection in found]


def test_every_row_is_a_group_and_vectors_must_fit(softmax):
    kind = type_of(softmax)
    assert reasons(kind, {"ITEMS": 2, "WIDTH": 4}, (5, 64)) == ["items are no whole vectors"]
    assert reasons(kind, {"WIDTH": 4}, (5, 333)) == ["rows are no whole vectors"]
    (launch,) = CustomKernel().plan(config(kind, {"GROUP": 32}), Problem(kind, (5, 333)), H200).steps
    assert isinstance(launch, Launch)
    assert (launch.grid, launch.work_group) == ((5, 1, 1), (32, 1, 1))


def test_the_reference_is_a_softmax_that_does_not_overflow(softmax):
    problem = Problem(type_of(softmax), (2, 3))
    x = np.array([[0, np.log(2), np.log(5)], [1000, 1000, 1000]])
    expected = OPERATIONS["Custom"].reference(problem, {"x": x.astype(np.float32).ravel()})["y"]
    assert np.allclose(expected.value, [[1 / 8, 2 / 8, 5 / 8], [1 / 3] * 3], rtol=1e-6)


@pytest.mark.opencl
@pytest.mark.parametrize("values", VALUES, ids=str)
def test_the_example_is_right_at_any_size(softmax, values):
    kind = type_of(softmax)
    able = [sizes for sizes in SIZES if not reasons(kind, values, sizes)]
    assert len(able) >= 2
    for sizes in able:
        assert wrong(kind, values, sizes) is None, sizes


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("start += GROUP * ITEMS", "start += GROUP * ITEMS + 1"),
        ("if (column < columns)", "if (column < columns - 1)"),
        ("(read.at[i] - largest)", "(read.at[i] - largest) * 0.999f"),
        ("/ sum", "/ (sum + 1e-2f)"),
        ("distance > 0", "distance > 1"),
    ],
)
def test_a_wrong_kernel_is_outside_the_tolerance(softmax, old, new):
    edited(softmax.with_name("softmax.cl"), old, new)
    assert wrong(type_of(softmax), {}, (5, 1000)) is not None


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_nvrtc_compiles_it_for_a_gpu_that_is_not_here(softmax, values):
    kind, kernel = type_of(softmax), CustomCudaKernel()
    chosen = kernel.space(kind).defaults | values
    (module,) = kernel.modules(chosen, kind)
    facts = toolchain("CUDA").compile(module, H200).facts[0]
    assert (facts.entry, facts.local_bytes) == ("softmax", 4 * chosen.integer("GROUP")), "what LocalMemory says"
    assert facts.max_work_group_size == chosen["GROUP"]
    assert not facts.spill_bytes


@pytest.mark.gpu
@pytest.mark.parametrize("values", VALUES, ids=str)
def test_the_example_is_right_on_a_gpu(softmax, values):
    kind = type_of(softmax)
    chosen = CustomCudaKernel().space(kind).defaults | values
    for sizes in SIZES:
        if not reasons(kind, values, sizes):
            assert wrong_on_gpu(CustomCudaKernel(), chosen, Problem(kind, sizes)) == []


# Tuned, moved, and used by a program that finds nothing of it but the logic.


def shipped(folder, device):
    """The example is tuned, with fewer values; then its `logic/` is moved, and everything else of it deleted."""
    tuning = copied_to(folder).with_name("softmax.yaml")
    text = tuning.read_text()
    for values, fewer in (("GROUP: [1, 32, 256]", "GROUP: [1, 32]"), ("ITEMS: [1, 4, 16]", "ITEMS: [1, 4]")):
        assert values in text
        text = text.replace(values, fewer)
    tuning.write_text(QUICK + text)
    outcome = tune(tuning, folder / "run", device=device, max_size=256)
    assert len(outcome.logic_files) == 1
    (folder / "shipped").mkdir()
    shutil.move(folder / "run" / "logic", folder / "shipped" / "kernels")
    shutil.rmtree(folder / "run")
    for path in folder.glob("softmax*"):
        path.unlink()
    return folder / "shipped" / "kernels"


@pytest.fixture(scope="module")
def logic(tmp_path_factory):
    opencl_device()
    return shipped(tmp_path_factory.mktemp("softmax"), "OpenCL")


@pytest.fixture(scope="module")
def cuda_logic(tmp_path_factory):
    toolchain("CUDA")
    cuda_device()
    return shipped(tmp_path_factory.mktemp("softmax"), "CUDA")


def printed(program, logic):
    """By a new process that begins in an empty folder."""
    empty = logic.parent / "empty"
    empty.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(logic)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=empty, env=environment).stdout


SELECTS = """
import sys, tunesmith
with tunesmith.load(sys.argv[1]) as library:
    print(library.select(256, 256).rule, library.select(4096, 777).rule, library.select(1, 1).solution.kernel)
"""


@pytest.mark.opencl
@pytest.mark.slow
def test_the_logic_alone_answers_in_a_new_process(logic):
    assert printed(SELECTS, logic) == "exact nearest Custom\n"


@pytest.mark.gpu
@pytest.mark.slow
def test_the_logic_alone_answers_in_a_new_process_on_a_gpu(cuda_logic):
    assert printed(SELECTS, cuda_logic) == "exact nearest CustomCuda\n"


LAUNCHES = """
import sys
import numpy as np
import tunesmith

x = np.random.default_rng(1).uniform(-4, 4, (200, 500)).astype(np.float32)
with tunesmith.load(sys.argv[1]) as library:
    y = library.launch("softmax", x=x)
powers = np.exp(x.astype(float))
print(y.shape, y.dtype, np.abs(y * powers.sum(axis=1, keepdims=True) / powers - 1).max() < 1e-5)
"""
LAUNCHES_ON_GPU = """
import sys
import torch
import tunesmith

x = torch.rand(200, 500, device="cuda") * 8 - 4
library = tunesmith.load(sys.argv[1])
y = library.launch("softmax", x=x)
right = torch.softmax(x.double(), dim=1)
print(tuple(y.shape), y.dtype, bool(((y / right - 1).abs() < 1e-5).all()))
"""


@pytest.mark.opencl
@pytest.mark.slow
def test_a_program_of_ten_lines_launches_it_on_numpys_arrays(logic):
    assert LAUNCHES.strip().count("\n") < 10
    assert printed(LAUNCHES, logic) == "(200, 500) float32 True\n"


@pytest.mark.gpu
@pytest.mark.slow
def test_a_program_of_ten_lines_launches_it_on_tensors(cuda_logic):
    pytest.importorskip("torch")
    assert LAUNCHES_ON_GPU.strip().count("\n") < 10
    assert printed(LAUNCHES_ON_GPU, cuda_logic) == "(200, 500) torch.float32 True\n"
