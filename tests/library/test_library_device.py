"""Which device a library works on: the one that is asked for, by a selector, by a part of its name, or open."""

from __future__ import annotations

import pytest

from tunesmith.devices.fake import FakeDevice, fake_target
from tunesmith.library._device import DeviceAbsentError, open_for, open_untuned
from tunesmith.logic import read_shipped, shipped_files
from tunesmith.records import UserError


def test_an_open_device_and_the_variable_name_the_device(monkeypatch):
    monkeypatch.setenv("TUNESMITH_DEVICE", "fake:CPU:8")
    assert open_untuned(None).target.selector == "fake:CPU:8"
    asked = FakeDevice(fake_target())
    assert open_untuned(asked) is asked


@pytest.mark.parametrize(("named", "found"), [("fake", "fake:GPU:8"), ("fake:CPU:8", "fake:CPU:8")])
def test_a_device_may_be_asked_for_by_a_part_of_its_name(named, found):
    """Without a logic, and with one, which the fake device has no language for."""
    assert open_untuned(named).target.selector == found
    logics = [(path, logic) for path in shipped_files() for logic in read_shipped(path).logics]
    with pytest.raises(DeviceAbsentError, match="fake"):
        open_for(logics, named)


def test_a_device_that_no_name_matches_is_a_mistake():
    with pytest.raises(UserError, match="no usable device matches 'no such chip'"):
        open_untuned("no such chip")
