"""What the tests of the CUDA families share: a target that needs no device, and the GPU where there is one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from compiled_ahead import binary
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.run_inspection import Defect
from tunesmith.devices import APIS
from tunesmith.devices.cuda.device import CudaDevice
from tunesmith.kernels import Kernel
from tunesmith.problems import OPERATIONS
from tunesmith.records import Configuration, Module, Problem, ProblemType, Target, Value
from tunesmith.toolchains import TOOLCHAINS, CompileError, Toolchain
from verified import verify

H200 = Target(
    api="CUDA",
    selector="CUDA:0",
    name="NVIDIA H200",
    kind="GPU",
    architecture="sm_90",
    driver="CUDA 13.0",
    compute_units=132,
    max_work_group_size=1024,
    local_memory_bytes=232448,
    global_memory_bytes=150 * 2**30,
    max_allocation_bytes=150 * 2**30,
    last_level_cache_bytes=60 * 2**20,
    sub_group_size=32,
    double_precision=True,
)


@cache
def cuda_device() -> CudaDevice:
    """The first GPU, opened once for all tests of the process."""
    found = APIS["CUDA"].find()[0]
    if found.target is None:
        pytest.skip(f"CUDA: {found.problem}")
    return APIS["CUDA"].open(found.target)  # type: ignore[return-value]


def torch_on_gpu() -> Any:
    """torch, with the first GPU open; a skip with the reason where there is none."""
    cuda_device()
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    return torch


def toolchain(language: str) -> Toolchain:
    """The compiler, or a skip with what it lacks."""
    made = TOOLCHAINS[language]
    if missing := made.unavailable():
        pytest.skip(missing)
    return made


def unoptimised(module: Module) -> Module:
    """The CUDA module as NVRTC compiles it fastest, in a tenth to a half of the time.

    Its text, entries, launch bounds and declared shared memory are the module's; its registers and spills are not.
    """
    return replace(module, options=(*module.options, _fastest()))


@cache
def _fastest() -> str:
    """The option for it, or for releases of NVRTC that do not know it that for debuggers."""
    option = "--Ofast-compile=max"
    try:
        toolchain("CUDA").compile(Module("CUDA", 'extern "C" __global__ void none() {}', ("none",), (option,)), H200)
    except CompileError:
        return "--device-debug"
    return option


def configuration(kernel: Kernel, problem_type: ProblemType, **values: Value) -> Configuration:
    return kernel.space(problem_type).defaults | Configuration(values)


def wrong_on_gpu(kernel: Kernel, config: Configuration, problem: Problem) -> list[Defect]:
    """Verify every check of the problem between guard bands, as the bench does."""
    device, operation = cuda_device(), OPERATIONS[problem.type.operation]
    toolchain(kernel.language)
    programs = [device.load(binary(module, device.target)) for module in kernel.modules(config, problem.type)]
    found = []
    for check in operation.checks(problem):
        inputs = operation.inputs(check, np.random.default_rng(7))
        case = VerificationCase(operation.operands(check), inputs, operation.reference(check, inputs))
        found.append(verify(device, programs, kernel.plan(config, check, device.target), case))
    return [defect for defect in found if defect]
