"""Toolchains by language."""

from tunesmith.records import Registry

from .base import Toolchain

TOOLCHAINS: Registry[Toolchain] = Registry(
    "toolchain",
    {
        "OpenCL": "tunesmith.toolchains.opencl:OpenCLToolchain",
        "CUDA": "tunesmith.toolchains.nvrtc:NvrtcToolchain",
        "Triton": "tunesmith.toolchains.triton:TritonToolchain",
        "BLAS": "tunesmith.toolchains.blas:BlasToolchain",
        "fake": "tunesmith.toolchains.fake:FakeToolchain",
    },
    group="tunesmith.toolchains",
)
