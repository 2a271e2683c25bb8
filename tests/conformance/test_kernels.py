"""Every kernel family keeps what families promise; what each computes and refuses is in `tests/kernels`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_runner import cuda_device
from opencl_runner import opencl_device
from tunesmith.devices import open_device
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.random import random_type, scalars_for
from tunesmith.records import Configuration, Problem
from tunesmith.testing import KernelSuite

EXAMPLES = Path(__file__).parents[2] / "examples"
SCALARS = Configuration({"alpha": 1.5, "beta": 0.5})
GEMM = Problem(gemm_type("s"), (33, 17, 29), (), SCALARS)
BATCHED = Problem(gemm_type("d", transpose_a=True, transpose_b=False, batched=True), (24, 20, 2, 16), (), SCALARS)
INTERLEAVED = Problem(gemm_type("s", batched=True, interleaved=True), (12, 8, 16, 9), (), SCALARS)
HALF = Problem(gemm_type("h", transpose_a=True, transpose_b=False, batched=True), (64, 48, 2, 512), (), SCALARS)
STENCIL = Problem(
    OPERATIONS["Custom"].type_of({"OperationType": "Custom", "Kernel": "custom_stencil.yaml"}, str, EXAMPLES), (40, 33)
)
SOFTMAX = Problem(
    OPERATIONS["Custom"].type_of({"OperationType": "Custom", "Kernel": "softmax_triton_kernel.yaml"}, str, EXAMPLES),
    (40, 333),
)
PHILOX = Problem(random_type("philox4_32_10", "normal"), (5000,), (), scalars_for("normal", seed=3))
SOBOL = Problem(random_type("sobol32"), (500, 3), (), scalars_for("uniform", seed=3))


@pytest.mark.opencl
class OnOpenCL(KernelSuite):
    launched = 1

    def device(self):
        return opencl_device()


class OnGpu(KernelSuite):
    def device(self):
        return cuda_device()

    @pytest.mark.gpu
    def test_results_are_right(self):
        super().test_results_are_right()


class TestTiledGemm(OnOpenCL):
    kernel, problems = KERNELS["TiledGemm"], (GEMM, BATCHED)
    configurations = (Configuration({"StreamKGrid": 4}),)


class TestRegisterGemm(OnOpenCL):
    kernel, problems = KERNELS["RegisterGemm"], (GEMM, BATCHED)
    configurations = (Configuration({"StreamKGrid": 4}),)


class TestBlockedGemm(OnOpenCL):
    kernel, problems = KERNELS["BlockedGemm"], (GEMM,)
    configurations = (Configuration({"Schedule": "FewColumns", "MacroTile": (512, 4), "ThreadTile": (16, 4)}),)


class TestCudaSimtGemm(OnGpu):
    kernel, problems = KERNELS["CudaSimtGemm"], (GEMM, BATCHED)


class TestCudaWgmmaGemm(OnGpu):
    kernel, problems = KERNELS["CudaWgmmaGemm"], (HALF,)
    configurations = (Configuration({"StreamKGrid": 132}),)


class TestTritonTmaGemm(OnGpu):
    kernel = KERNELS["TritonTmaGemm"]
    problems = (Problem(gemm_type("s", transpose_b=False, batched=True), (64, 48, 2, 64), (), SCALARS),)
    configurations = (Configuration({"DepthU": 16}),)


class TestTritonGemm(OnGpu):
    kernel, problems = KERNELS["TritonGemm"], (GEMM, HALF)
    configurations = (
        Configuration({"LoadPath": "Pointer"}),
        Configuration({"Schedule": "Persistent"}),
        Configuration({"Schedule": "SplitK", "GlobalSplitU": 2}),
        Configuration({"Schedule": "StreamK", "StreamKGrid": 132}),
    )


class TestTritonGemv(OnGpu):
    kernel = KERNELS["TritonGemv"]
    problems = (Problem(gemm_type("s"), (33, 1, 29), (), SCALARS), Problem(HALF.type, (64, 1, 2, 64), (), SCALARS))


class TestVendorBlas(OnOpenCL):
    kernel, problems = KERNELS["VendorBlas"], (GEMM, BATCHED)


class TestPortBlasGemm(OnOpenCL):
    kernel, problems = KERNELS["PortBlasGemm"], (GEMM, BATCHED, INTERLEAVED)
    configurations = tuple(Configuration({"PortBlasAlgorithm": name}) for name in ("interleaved", "tall_skinny"))


class TestPortBlasCuda(OnGpu):
    kernel, problems = KERNELS["PortBlasCuda"], (GEMM, BATCHED, INTERLEAVED)
    configurations = TestPortBlasGemm.configurations


class TestCustom(OnOpenCL):
    kernel, problems = KERNELS["Custom"], (STENCIL,)


class TestCustomCuda(OnGpu):
    kernel, problems = KERNELS["CustomCuda"], (STENCIL,)


class TestCustomTriton(OnGpu):
    kernel, problems = KERNELS["CustomTriton"], (SOFTMAX,)


class TestOpenCLRandom(OnOpenCL):
    kernel, problems = KERNELS["OpenCLRandom"], (PHILOX, SOBOL)


class TestCudaRandom(OnGpu):
    kernel, problems = KERNELS["CudaRandom"], (PHILOX, SOBOL)


class TestFakeGemm(KernelSuite):
    kernel, problems = KERNELS["FakeGemm"], (GEMM, BATCHED)

    def device(self):
        return open_device(fake_target())


def test_every_family_is_among_them():
    suites = (suite for name, suite in globals().items() if name.startswith("Test"))
    assert {suite.kernel.name for suite in suites} == set(KERNELS)
