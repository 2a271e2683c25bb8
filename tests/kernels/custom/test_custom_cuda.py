"""A described kernel in CUDA C++: its limits and launches, its arithmetic on the host, NVRTC, and a tuning on a GPU."""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
import subprocess

import numpy as np
import pytest

from cuda_runner import H200, cuda_device, toolchain, wrong_on_gpu
from described import EXAMPLES, STENCIL, edited, type_of
from tunesmith import session
from tunesmith.devices import FoundDevice, choice
from tunesmith.kernels import KERNELS, OPEN, family_for, tuning_space
from tunesmith.kernels.custom import CustomCudaKernel, CustomKernel
from tunesmith.problems.custom import CustomOperation
from tunesmith.records import (
    Configuration,
    Launch,
    LocalArgument,
    Problem,
    ScalarArgument,
    UserError,
)
from tunesmith.session.tuning_file.file import ready

FAMILY = CustomCudaKernel()
POCL = dataclasses.replace(H200, api="OpenCL", selector="OpenCL:0:0", name="a CPU", kind="CPU")
TUNING = """
BenchmarkProblems:
  - - OperationType: Custom
      Kernel: custom_stencil.yaml
    - BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [40, 50]
"""


def config(problem_type, **values):
    return FAMILY.space(problem_type).defaults | Configuration(values)  # type: ignore[arg-type]


def launch_of(problem_type, sizes=(5, 33), **values):
    (launch,) = FAMILY.plan(config(problem_type, **values), Problem(problem_type, sizes), H200).steps
    assert isinstance(launch, Launch)
    return launch


def reasons(problem_type, sizes=(64, 64), **values):
    chosen = config(problem_type, **values)
    always = list(FAMILY.rejections(chosen, problem_type, H200))
    found = always or list(FAMILY.rejections_for(chosen, Problem(problem_type, sizes), H200))
    return [rejection.reason for rejection in found]


def test_both_languages_are_one_kernel_with_one_space_and_one_launch():
    problem_type = type_of(EXAMPLES / STENCIL)
    opencl = CustomKernel()
    own = opencl.space(problem_type).defaults
    assert dict(own) | {"KernelLanguage": "CUDA"} == dict(config(problem_type))
    (there,) = opencl.plan(own, Problem(problem_type, (5, 33)), H200).steps
    assert there == launch_of(problem_type)
    (module,) = FAMILY.modules(config(problem_type), problem_type)
    assert (module.language, module.entries) == ("CUDA", ("stencil",))
    assert "__global__" in module.text


def test_the_language_picks_the_family_and_is_open_until_the_device_is_known(copied):
    both = tuning_space(type_of(copied)).defaults
    assert both["KernelLanguage"] == OPEN
    for language, name in (("OpenCL", "Custom"), ("CUDA", "CustomCuda")):
        assert family_for("Custom", both | {"KernelLanguage": language}) is KERNELS[name]


@pytest.mark.parametrize(
    ("here", "selector", "device", "language"),
    [
        ((POCL, H200), None, "CUDA:0", "CUDA"),
        ((POCL,), None, "OpenCL:0:0", "OpenCL"),
        ((POCL, H200), "OpenCL", "OpenCL:0:0", "OpenCL"),
        ((POCL, H200), "CPU", "OpenCL:0:0", "OpenCL"),
        ((POCL, H200), "gpu", "CUDA:0", "CUDA"),
    ],
)
def test_a_file_that_names_no_language_is_in_the_one_of_the_device(
    copied,
    monkeypatch,
    here,
    selector,
    device,
    language,
):
    offered(monkeypatch, *here)
    found = ready(tuning_file(copied), None, selector)
    file, target = found.file, found.target
    assert (target.selector, file.groups[0].start["KernelLanguage"]) == (device, language)


def test_a_file_that_names_a_language_gets_a_device_that_runs_it(copied, monkeypatch):
    offered(monkeypatch, POCL, H200)
    named = TUNING.replace("- Bench", "- InitialSolutionParameters: [KernelLanguage: [OpenCL]]\n      Bench")
    found = ready(tuning_file(copied, named), None, None)
    file, target = found.file, found.target
    assert (target.api, file.groups[0].start["KernelLanguage"]) == ("OpenCL", "OpenCL")
    what = r"NVIDIA H200 \(CUDA:0\) is there, but runs only CUDA, Triton and BLAS, and the file needs OpenCL"
    with pytest.raises(UserError, match=rf"^device: {what}; name one that does: OpenCL:0:0 \(a CPU\)"):
        ready(tuning_file(copied, named), None, "CUDA")


def test_where_no_device_runs_the_language_what_is_missing_is_said(copied, monkeypatch):
    offered(monkeypatch, H200, FoundDevice("OpenCL", problem="no platform", remedy="install one"))
    edited(copied, "  CUDA: custom_stencil.cu\n", "")
    with pytest.raises(UserError, match=r"the file needs OpenCL; OpenCL: no platform \(install one\)"):
        ready(tuning_file(copied), None, None)
    with pytest.raises(UserError, match=r"fake GPU \(fake:GPU:8\) is there, but runs only fake, and the file needs"):
        ready(tuning_file(copied), None, "fake:GPU:8")


def test_what_a_cuda_device_cannot_launch_is_rejected_with_its_reason(copied):
    edited(copied, "[4, 8, 16, 32, 64]", "[4, 8, 16, 32, 64, 256, 4096]")
    assert reasons(type_of(copied)) == []
    assert reasons(type_of(copied), GROUP_X=4096) == ["work-group size"]
    assert reasons(type_of(copied), (1 << 21, 1), GROUP_Y=4) == ["grid"]
    declared = {"STAGED": 1, "GROUP_X": 256, "ITEM_X": 8, "ITEM_Y": 2}
    assert reasons(type_of(copied), **declared) == ["local memory"], "beyond what a source may declare"
    edited(copied, "WorkGroup: [GROUP_X, GROUP_Y]", "WorkGroup: [1, 1, GROUP_X]")
    assert reasons(type_of(copied), GROUP_X=256) == ["work-group size"], "along z there are 64 at most"


def test_local_memory_of_arguments_is_shared_memory_one_after_the_other(copied):
    old = "  - {Name: centre,"
    new = f"  - {{Name: first, LocalBytes: GROUP_X * 4 + 4}}\n  - {{Name: second, LocalBytes: 20}}\n{old}"
    problem_type = type_of(edited(copied, old, new))
    launch = launch_of(problem_type, GROUP_X=8)
    assert launch.shared_bytes == 48 + 32, "36 and 20 bytes, each from a multiple of 16"
    assert not any(isinstance(argument, LocalArgument) for argument in launch.arguments)
    assert launch.arguments == launch_of(type_of(EXAMPLES / STENCIL), GROUP_X=8).arguments
    edited(copied, "LocalBytes: 20", f"LocalBytes: {H200.local_memory_bytes - 48}")
    assert reasons(type_of(copied), GROUP_X=8) == [], "it takes all that there is"
    edited(copied, f"LocalBytes: {H200.local_memory_bytes - 48}", f"LocalBytes: {H200.local_memory_bytes - 47}")
    assert reasons(type_of(copied), GROUP_X=8) == ["local memory"]


# The source's own text, run by the host's C++ compiler with one thread for each work-item.

SHIM = """
#include <barrier>
#include <thread>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define __restrict__ __restrict
struct Index { int x, y; };
thread_local Index threadIdx, blockIdx;
std::barrier<>* meeting;
void __syncthreads() { meeting->arrive_and_wait(); }
"""
RUN = """
extern "C" void run(const int *grid, const float *input, float *output, int rows, int columns, float centre)
{
    std::barrier<> all(GROUP_X * GROUP_Y);
    meeting = &all;
    std::vector<std::thread> threads;
    for (int item = 0; item < GROUP_X * GROUP_Y; ++item)
        threads.emplace_back([=] {
            threadIdx = {item % GROUP_X, item / GROUP_X};
            for (int y = 0; y < grid[1]; ++y)
                for (int x = 0; x < grid[0]; ++x) {
                    blockIdx = {x, y};
                    stencil(input, output, rows, columns, centre);
                    __syncthreads();
                }
        });
    for (auto &one : threads) one.join();
}
"""


@pytest.fixture(scope="module", params=[0, 1], ids=["plain", "staged"])
def on_host(request, tmp_path_factory):
    """A configuration of the example and its program for the host, compiled once for all sizes."""
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("no g++ here")
    folder, problem_type = tmp_path_factory.mktemp("stencil"), type_of(EXAMPLES / STENCIL)
    chosen = config(problem_type, GROUP_X=4, GROUP_Y=2, ITEM_X=2, ITEM_Y=4, STAGED=request.param)
    (module,) = FAMILY.modules(chosen, problem_type)
    (folder / "kernel.cpp").write_text(SHIM + module.text + RUN)
    command = [compiler, "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread", *module.options]
    done = subprocess.run([*command, "kernel.cpp", "-o", "kernel.so"], cwd=folder, capture_output=True, text=True)
    if "barrier: No such file" in done.stderr:
        pytest.skip("this g++ has no std::barrier")
    assert done.returncode == 0, done.stderr
    return chosen, ctypes.CDLL(str(folder / "kernel.so"))


@pytest.mark.parametrize("sizes", [(1, 1), (7, 5), (33, 70)])
def test_the_text_computes_what_the_reference_says(on_host, sizes):
    chosen, library = on_host
    problem = Problem(type_of(EXAMPLES / STENCIL), sizes)
    (launch,) = FAMILY.plan(chosen, problem, H200).steps
    inputs = CustomOperation().inputs(problem, np.random.default_rng(3))
    output = np.full(sizes, np.nan, np.float32)
    scalars = [np.ctypeslib.as_ctypes_type(a.dtype)(a.value) for a in launch.arguments if isinstance(a, ScalarArgument)]
    memory = [ctypes.c_void_p(array.ctypes.data) for array in (inputs["input"], output)]
    library.run((ctypes.c_int * 3)(*launch.grid), *memory, *scalars)
    expected = CustomOperation().reference(problem, inputs)["output"]
    assert (np.abs(output - expected.value) <= expected.bound).all()


# NVRTC, where it is installed; it needs no GPU.


def compiled(problem_type, **values):
    (module,) = FAMILY.modules(config(problem_type, **values), problem_type)
    return toolchain("CUDA").compile(module, H200).facts[0]


def test_nvrtc_compiles_the_example_for_a_gpu_that_is_not_here():
    problem_type = type_of(EXAMPLES / STENCIL)
    plain, staged = compiled(problem_type), compiled(problem_type, STAGED=1)
    assert (plain.entry, plain.local_bytes) == ("stencil", 0)
    assert staged.local_bytes == 4 * (16 + 2) * (4 + 2), "what LocalMemory says of the defaults"
    assert plain.registers
    assert plain.max_work_group_size == 64, "the launch bounds"


def with_tile_as_argument(description):
    """The example with its tile in memory whose size is given at the launch: twice what it needs."""
    declared = "__shared__ float tile[TILE_Y + 2][TILE_X + 2];"
    dynamic = "extern __shared__ float bytes[]; float (*tile)[TILE_X + 2] = (float (*)[TILE_X + 2])bytes;"
    edited(description.with_name("custom_stencil.cu"), declared, dynamic)
    size = "4 * (GROUP_X * ITEM_X + 2) * (GROUP_Y * ITEM_Y + 2)"
    edited(description, f'LocalMemory: "STAGED * {size}"\n', "")
    return type_of(
        edited(description, "  - {Name: centre,", f"  - {{Name: tile, LocalBytes: 2 * {size}}}\n  - {{Name: centre,")
    )


def test_nvrtc_compiles_what_takes_its_shared_memory_at_the_launch(copied):
    facts = compiled(with_tile_as_argument(copied), STAGED=1)
    assert (facts.local_bytes, facts.max_work_group_size) == (0, 64)


# A GPU.


@pytest.mark.gpu
@pytest.mark.parametrize("sizes", [(1, 1), (33, 70), (500, 700)])
@pytest.mark.parametrize("staged", [0, 1])
def test_the_example_is_right_on_a_gpu(sizes, staged):
    problem_type = type_of(EXAMPLES / STENCIL)
    chosen = config(problem_type, STAGED=staged, ITEM_X=2, ITEM_Y=4)
    assert wrong_on_gpu(FAMILY, chosen, Problem(problem_type, sizes)) == []


@pytest.mark.gpu
def test_shared_memory_of_arguments_is_there_on_a_gpu(copied):
    problem_type = with_tile_as_argument(copied)
    chosen = config(problem_type, STAGED=1, GROUP_X=64, GROUP_Y=8, ITEM_X=4, ITEM_Y=4)
    problem = Problem(problem_type, (500, 700))
    assert launch_of(problem_type, **chosen).shared_bytes > 48 * 1024
    assert wrong_on_gpu(FAMILY, chosen, problem) == []


@pytest.mark.gpu
def test_the_example_is_tuned_on_cuda_and_every_winner_is_in_it(tmp_path):
    toolchain("CUDA")
    cuda_device()
    outcome = session.tune(EXAMPLES / "stencil_tuning.yaml", tmp_path, device="CUDA", max_size=512)
    assert outcome.target.api == "CUDA"
    assert not outcome.failed
    (group,) = outcome.plan.groups
    winners = [group.measure.oracle.solution(decision.winner) for decision in group.result.decisions.values()]
    assert {(winner.kernel, winner.configuration["KernelLanguage"]) for winner in winners} == {("CustomCuda", "CUDA")}
    assert len(outcome.logic_files) == 1


def offered(monkeypatch, *found):
    """These are the devices here, and all of them pass their trial."""
    devices = [device if isinstance(device, FoundDevice) else FoundDevice(device.name, device) for device in found]

    def find(api, drivers):
        return tuple(device for device in devices if (device.target.api if device.target else device.name) == api)

    real = choice._find
    monkeypatch.setattr(choice, "_find", lambda api, drivers: (real if api == "fake" else find)(api, drivers))
    monkeypatch.setattr(choice, "_trial", lambda api, selector, drivers: "")


def tuning_file(description, text=TUNING):
    path = description.parent / "tuning.yaml"
    path.write_text(text)
    return path
