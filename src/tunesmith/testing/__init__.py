"""Conformance suites: what an operation, a kernel family, a strategy, a device and a toolchain each promise, as tests.

A suite is a class. Its subclass, in a test file, names the member to look at, and pytest collects the rest:

    class TestMine(KernelSuite):
        kernel = MyKernel()
        problems = (Problem(my_type, (33, 65)),)

This package needs pytest, which tunesmith does not install for its users; so nothing else in tunesmith imports it.
"""

from .devices import DeviceSuite, DeviceWork
from .kernels import KernelSuite
from .operations import OperationSuite
from .strategies import StrategySuite
from .targets import targets_for
from .toolchains import ToolchainSuite

__all__ = [
    "DeviceSuite",
    "DeviceWork",
    "KernelSuite",
    "OperationSuite",
    "StrategySuite",
    "ToolchainSuite",
    "targets_for",
]
