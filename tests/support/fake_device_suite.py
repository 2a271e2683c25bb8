"""The device suite for the fake device, which launches nothing but products."""

from __future__ import annotations

import numpy as np

from tunesmith.devices import APIS
from tunesmith.kernels.fake import FakeGemm
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Launch, Problem
from tunesmith.testing import DeviceSuite, DeviceWork


class FakeDeviceSuite(DeviceSuite):
    api = APIS["fake"]

    def work(self) -> DeviceWork:
        """A product of ones: each element is a sum of five."""
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
