"""The state of a device while it works, by a management library that is not there and by the host's load average."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cuda_runner import H200
from portblas_kernels import CPU, GPU
from tunesmith.devices import health
from tunesmith.devices.health import Health, device_health

NAMES = ("SwPowerCap", "HwSlowdown", "SyncBoost", "SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown")
IDLE = 1
"""NVML's bit of an idle GPU, which is no reason to worry."""
BITS = {name: 4 << index for index, name in enumerate(NAMES)}


@pytest.fixture
def nvml(monkeypatch):
    """A function that sets the management library, with what a test changes; an exception is raised by the query."""

    def has(prefix="nvmlClocksEventReason", **changes):
        answers = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetHandleByPciBusId": "handle",
            "nvmlDeviceGetClockInfo": 1980,
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerUsage": 351_500,
            "nvmlDeviceGetCurrentClocksEventReasons": IDLE,
            "nvmlDeviceGetComputeRunningProcesses": [],
        } | changes

        def query(name):
            def asked(*arguments):
                log.append((name, *arguments))
                if isinstance(answers[name], Exception):
                    raise answers[name]
                return answers[name]

            return asked

        log: list[tuple] = []
        constants = {"NVML_CLOCK_SM": 1, "NVML_TEMPERATURE_GPU": 0}
        bits = {prefix + name: bit for name, bit in BITS.items()}
        library = SimpleNamespace(**{name: query(name) for name in answers}, **constants, **bits)
        monkeypatch.setitem(sys.modules, "pynvml", library)
        return log

    def driver(name, *arguments):
        return {"cuDeviceGet": f"device {arguments[-1]}", "cuDeviceGetPCIBusId": b"0000:4E:00.0\0\0\0"}.get(name)

    monkeypatch.setattr(health, "call", driver)
    return has


def test_a_gpu_tells_its_clock_its_temperature_its_power_and_who_uses_it(nvml):
    """It is found by its place on the bus, since the two libraries number GPUs differently."""
    log = nvml()
    assert device_health(replace(H200, selector="CUDA:3")) == Health(1980, 41, 351.5, (), 0, None)
    assert ("nvmlDeviceGetHandleByPciBusId", b"0000:4E:00.0") in log
    assert (log[0][0], log[-1][0]) == ("nvmlInit", "nvmlShutdown")


def test_the_driver_is_asked_for_the_gpu_of_the_selector(nvml, monkeypatch):
    nvml()
    asked = []
    monkeypatch.setattr(health, "call", lambda *arguments: asked.append(arguments) or b"0000:4E:00.0")
    device_health(replace(H200, selector="CUDA:13"))
    assert asked == [("cuInit", 0), ("cuDeviceGet", 13), ("cuDeviceGetPCIBusId", 32, b"0000:4E:00.0")]


@pytest.mark.parametrize("prefix", ["nvmlClocksEventReason", "nvmlClocksThrottleReason"])
@pytest.mark.parametrize(
    ("names", "reasons"),
    [
        ((), ()),
        (("SwPowerCap",), ("sw power cap",)),
        (("HwSlowdown", "HwThermalSlowdown"), ("hw slowdown", "hw thermal slowdown")),
        (NAMES, ("sw power cap", "hw slowdown", "sync boost", "sw thermal slowdown", "hw thermal slowdown",
                 "hw power brake slowdown")),
    ],
)  # fmt: skip
def test_the_reasons_for_a_lower_clock_are_named_by_libraries_before_and_since_driver_535(nvml, prefix, names, reasons):
    nvml(prefix, nvmlDeviceGetCurrentClocksEventReasons=IDLE + sum(BITS[name] for name in names))
    assert device_health(H200).throttled == reasons


def test_what_a_gpu_does_not_tell_is_none_and_the_rest_is_told(nvml):
    nvml(
        nvmlDeviceGetPowerUsage=OSError("not supported"),
        nvmlDeviceGetCurrentClocksEventReasons=OSError("not supported"),
        nvmlDeviceGetComputeRunningProcesses=OSError("not permitted"),
    )
    assert device_health(H200) == Health(1980, 41, None, (), None, None)


def test_reasons_that_the_library_does_not_name_are_none(nvml):
    nvml("nvmlClocksOfTomorrow", nvmlDeviceGetCurrentClocksEventReasons=~0)
    assert device_health(H200) == Health(1980, 41, 351.5, (), 0, None)


def test_processes_count_unless_they_are_this_one_or_its_descendants(nvml):
    running = [SimpleNamespace(pid=pid) for pid in (os.getpid(), os.getppid(), 1, 2**22 + 1)]
    nvml(nvmlDeviceGetComputeRunningProcesses=running)
    assert device_health(H200).others == 3


@pytest.mark.parametrize("ours", [40, 1])
def test_a_child_of_this_process_is_ours_and_so_is_its_child(nvml, monkeypatch, ours):
    """In a container this process may be the first, 1, whose parent is 0."""
    parents = {ours: 0, 50: ours, 51: 50, 61: 60, 60: 0}
    stat = {f"/proc/{pid}/stat": f"{pid} (a (b) c) S {parent} 1 1" for pid, parent in parents.items()}
    monkeypatch.setattr(os, "getpid", lambda: ours)
    monkeypatch.setattr(health, "Path", lambda name: SimpleNamespace(read_text=lambda: stat[name]))
    for pid, others in ((ours, 0), (50, 0), (51, 0), (60, 1), (61, 1)):
        nvml(nvmlDeviceGetComputeRunningProcesses=[SimpleNamespace(pid=pid)])
        assert device_health(H200).others == others


@pytest.mark.parametrize("broken", ["nvmlInit", "nvmlDeviceGetHandleByPciBusId"])
def test_a_library_that_does_not_answer_tells_nothing(nvml, broken):
    nvml(**{broken: OSError("no driver")})
    assert device_health(H200) == Health()


def test_the_hosts_processor_tells_its_load_of_the_last_minute_and_other_devices_nothing(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 2.5, 3.5))
    assert device_health(CPU) == Health(busy=1.5)
    assert device_health(GPU) == Health()
