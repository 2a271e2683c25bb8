"""Every toolchain keeps what toolchains promise; what each adds is in `tests/toolchains` and `tests/devices`."""

from __future__ import annotations

import pytest

from cuda_runner import H200
from opencl_runner import opencl_device
from tunesmith.devices import open_device
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Module
from tunesmith.testing import ToolchainSuite
from tunesmith.toolchains import TOOLCHAINS


@pytest.mark.opencl
class TestOpenCL(ToolchainSuite):
    toolchain = TOOLCHAINS["OpenCL"]
    module = Module("OpenCL", "__kernel void f(__global int *a) { a[0] = WANTED; }", ("f",), ("-DWANTED=3",))
    broken = Module("OpenCL", "__kernel void f(__global int *a) { undeclared = 1; }", ("f",))

    def find_target(self):
        return opencl_device().target

    def device(self):
        return opencl_device()


class TestCuda(ToolchainSuite):
    toolchain, target = TOOLCHAINS["CUDA"], H200
    module = Module("CUDA", 'extern "C" __global__ void f(int *a) { a[0] = WANTED; }', ("f",), ("-DWANTED=3",))
    broken = Module("CUDA", 'extern "C" __global__ void f(int *a) { undeclared = 1; }', ("f",))


TRITON = KERNELS["TritonGemv"]
KIND = gemm_type("s", transpose_a=True, transpose_b=False)
(TRITON_MODULE,) = TRITON.modules(TRITON.space(KIND).defaults, KIND)


class TestTriton(ToolchainSuite):
    toolchain, target, module = TOOLCHAINS["Triton"], H200, TRITON_MODULE
    broken = Module("Triton", "", ("f",), (), TRITON_MODULE.python, Configuration({"signature": (), "constexprs": ()}))


@pytest.mark.opencl
class TestBlas(ToolchainSuite):
    toolchain = TOOLCHAINS["BLAS"]
    module, broken = Module("BLAS", "", ("gemm",)), Module("BLAS", "", ("trsm",))

    def find_target(self):
        return opencl_device().target

    def device(self):
        return opencl_device()


class TestFake(ToolchainSuite):
    toolchain, target, module = TOOLCHAINS["fake"], fake_target(), Module("fake", "gemm", ("gemm",))
    broken = Module("fake", "gemm", ("gemm",), constants=Configuration({"Fault": "compile error"}))

    def device(self):
        return open_device(self.target)


def test_every_toolchain_is_among_them():
    assert list(TOOLCHAINS) == [s.toolchain.language for s in (TestOpenCL, TestCuda, TestTriton, TestBlas, TestFake)]
