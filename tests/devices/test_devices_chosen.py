"""Which of several devices a selector chooses; a device that failed its trial is not used. No driver is loaded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuda_runner import H200
from portblas_kernels import GPU
from tunesmith.devices import APIS, FoundDevice, choice, choose, discover, open_device
from tunesmith.records import UserError


def opencl(platform, number, kind="GPU", name="a card"):
    return replace(GPU, api="OpenCL", selector=f"OpenCL:{platform}:{number}", kind=kind, name=name)


def cuda(number):
    return replace(H200, selector=f"CUDA:{number}")


@pytest.fixture
def machine(monkeypatch):
    """A function that sets the devices to find, in order, and the problems of broken ones, by selector."""
    monkeypatch.delenv(choice.SELECTOR_VARIABLE, raising=False)

    def has(*targets, broken=None):
        tried: list[str] = []

        def trial(api, selector, drivers):
            tried.append(selector)
            return (broken or {}).get(selector, "")

        def find(api, drivers):
            return tuple(FoundDevice(target.name, target) for target in targets if target.api == api)

        monkeypatch.setattr(choice, "_find", find)
        monkeypatch.setattr(choice, "_trial", trial)
        return tried

    return has


MANY = [opencl(platform, number) for platform in (10, 1, 0) for number in (10, 11, 1, 0)]


@pytest.mark.parametrize("selector", [target.selector for target in MANY])
def test_a_whole_selector_means_that_device_alone(machine, selector):
    """`OpenCL:0:1` does not choose `OpenCL:0:10`, which is found before it."""
    machine(*MANY)
    assert choose(selector).selector == selector


@pytest.mark.parametrize(("selector", "found"), [("OpenCL:0", "OpenCL:0:10"), ("OpenCL:1", "OpenCL:1:10")])
def test_the_beginning_of_a_selector_ends_between_its_numbers(machine, selector, found):
    machine(*MANY)
    assert choose(selector).selector == found


def test_half_a_number_is_no_selector(machine):
    machine(opencl(0, 10), cuda(10), cuda(11))
    for half in ("OpenCL:0:1", "OpenCL:0:", "OpenC", "CUDA:1", "CUDA:", ":10"):
        with pytest.raises(UserError, match="no usable device matches"):
            choose(half)
    assert choose("CUDA:11") == cuda(11)


def test_a_device_is_opened_by_its_whole_selector(machine, monkeypatch):
    devices = {target.selector: target for target in MANY}
    api = APIS["OpenCL"]
    monkeypatch.setattr(type(api), "find", lambda self: tuple(FoundDevice(t.name, t) for t in MANY))
    monkeypatch.setattr(type(api), "open", lambda self, target: target)
    for selector, target in devices.items():
        assert open_device(selector) == target
    for half in ("OpenCL:1", "OpenCL:0:", "OpenCL:0:12"):
        with pytest.raises(UserError, match="no usable device matches"):
            open_device(half)


def test_gpus_come_before_cpus_and_both_are_found_by_kind_and_name(machine):
    cpu, card = opencl(0, 0, "CPU", "Old Processor"), opencl(1, 0, "GPU", "New Card")
    machine(cpu, card)
    assert [choose(selector) for selector in ("", "gpu", "CPU", "old proc", "CARD")] == [card, card, cpu, cpu, card]
    with pytest.raises(UserError, match=r"no usable device matches 'accelerator'.*OpenCL:0:0 \(Old Processor\)"):
        choose("accelerator")


# --- trials -----------------------------------------------------------------------------------------------------------

NONSENSE = "compiling and running a small kernel computed [0]"


def test_a_device_that_failed_its_trial_is_passed_over(machine):
    tried = machine(opencl(0, 0), opencl(0, 1), opencl(0, 2), broken={"OpenCL:0:0": NONSENSE})
    assert choose().selector == "OpenCL:0:1"
    assert tried == ["OpenCL:0:0", "OpenCL:0:1"], "those behind the first that works are not tried"


@pytest.mark.parametrize("selector", ["", "OpenCL", "OpenCL:0", "OpenCL:0:0", "gpu", "a card"])
def test_a_device_that_failed_its_trial_is_not_used_because_it_is_named(machine, selector):
    machine(opencl(0, 0), broken={"OpenCL:0:0": NONSENSE})
    with pytest.raises(UserError, match=r"computed \[0\].*update or remove the driver"):
        choose(selector)


def test_devices_are_shown_with_what_is_wrong_with_them_behind_those_that_work(machine):
    machine(opencl(0, 0), opencl(0, 1, "CPU"), opencl(0, 2), broken={"OpenCL:0:0": NONSENSE})
    found = discover("OpenCL")
    assert [device.target.selector for device in found if device.target] == ["OpenCL:0:2", "OpenCL:0:1", "OpenCL:0:0"]
    assert [device.usable for device in found] == [True, True, False]
    assert NONSENSE in found[-1].problem
    assert "a card" in found[-1].remedy


@pytest.mark.parametrize(
    ("selector", "asks"), [("fake:GPU:8", True), ("fake", True), ("OpenCL:0:0", False), ("", False)]
)
def test_the_fake_device_is_asked_for_by_its_api_alone(monkeypatch, selector, asks):
    assert choice.asks_for_hidden(selector) is asks
    monkeypatch.setenv(choice.SELECTOR_VARIABLE, selector)
    assert choice.asks_for_hidden(None) is asks


def test_what_is_no_selector_is_answered_with_the_apis_that_a_search_shows():
    with pytest.raises(UserError) as refused:
        open_device("a card")
    assert "write API:number, where API is one of CUDA, OpenCL" in str(refused.value)
    assert "fake" not in str(refused.value)


def test_a_device_without_the_files_language_is_answered_with_one_that_has_it(machine):
    machine(opencl(0, 0), cuda(0))
    with pytest.raises(UserError, match=r"the file needs CUDA; name one that does: CUDA:0 \("):
        choose("OpenCL:0:0", ["CUDA"])
