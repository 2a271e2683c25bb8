"""Every device keeps what devices promise; what each adds is in `tests/devices`."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.devices import APIS
from tunesmith.kernels.fake import FakeGemm
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Launch, Problem
from tunesmith.testing import DeviceSuite, DeviceWork


class TestFake(DeviceSuite):
    api = APIS["fake"]

    def work(self) -> DeviceWork:
        """A product of ones, since it knows nothing else: each element is a sum of five."""
        kernel, kind = FakeGemm(), gemm_type("s")
        problem = Problem(kind, (8, 4, 5), (), Configuration({"alpha": 1.0, "beta": 0.0}))
        config = kernel.space(kind).defaults
        (module,), (launch,) = kernel.modules(config, kind), kernel.plan(config, problem, self.target()).steps
        assert isinstance(launch, Launch)
        operands = {
            operand.name: np.ones(operand.storage_elements, np.float32).view(np.uint8)
            for operand in OPERATIONS["GEMM"].operands(problem)
        }
        return DeviceWork(module, launch, operands, "D", np.full(8 * 4, 5, np.float32).view(np.uint8))


@pytest.mark.opencl
class TestOpenCL(DeviceSuite):
    api = APIS["OpenCL"]


@pytest.mark.gpu
class TestCuda(DeviceSuite):
    api = APIS["CUDA"]


def test_every_device_api_is_among_them() -> None:
    assert {suite.api.name for suite in (TestFake, TestOpenCL, TestCuda)} == set(APIS)
