"""Every device keeps what devices promise; what each adds is in `tests/devices`."""

from __future__ import annotations

import pytest

from fake_device_suite import FakeDeviceSuite
from tunesmith.devices import APIS
from tunesmith.testing import DeviceSuite


class TestFake(FakeDeviceSuite):
    """All of it."""


@pytest.mark.opencl
class TestOpenCL(DeviceSuite):
    api = APIS["OpenCL"]


@pytest.mark.gpu
class TestCuda(DeviceSuite):
    api = APIS["CUDA"]


def test_every_device_api_is_among_them():
    assert {suite.api.name for suite in (TestFake, TestOpenCL, TestCuda)} == set(APIS)
