"""How a device is while it works: clock, temperature, who else is on it. Asked, never changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.records import Target

from .cuda.driver import call

_REASONS = (
    "SW_POWER_CAP",
    "HW_SLOWDOWN",
    "SYNC_BOOST",
    "SW_THERMAL_SLOWDOWN",
    "HW_THERMAL_SLOWDOWN",
    "HW_POWER_BRAKE_SLOWDOWN",
)
"""NVML's `nvmlClocksEventReason...`, without those that mean nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Health:
    """One look. MHz of the multiprocessors, degrees Celsius, watts; None where the device does not tell.

    `throttled` are the reasons for a lower clock, `others` counts processes beside those of ours (None: not known),
    `busy` is what else the host's processors do, in processors, where the device is the host's CPU.
    """

    clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: tuple[str, ...] = ()
    others: int | None = None
    busy: float | None = None


def look(target: Target) -> Health:
    """How the device is now."""
    if target.api == "CUDA":
        return _of_gpu(target)
    if target.shares_the_host:
        return Health(busy=os.getloadavg()[0])
    return Health()


def _of_gpu(target: Target) -> Health:
    """By NVIDIA's management library; an empty look where it is not there or does not answer."""
    try:
        nvml: Any = __import__("pynvml")
        nvml.nvmlInit()
    except Exception:
        return Health()
    try:
        handle = _handle(nvml, target)
        return Health(
            _asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            _asked(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            _asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            _reasons(nvml, handle),
            _asked(lambda: sum(map(_is_strange, nvml.nvmlDeviceGetComputeRunningProcesses(handle)))),
        )
    except Exception:
        return Health()
    finally:
        nvml.nvmlShutdown()


def _handle(nvml: Any, target: Target) -> Any:
    """By the bus, since CUDA's numbering is not the library's."""
    call("cuInit", 0)
    ordinal = int(target.selector.partition(":")[2])
    bus = call("cuDeviceGetPCIBusId", 32, call("cuDeviceGet", ordinal))
    return nvml.nvmlDeviceGetHandleByPciBusId(bytes(bus).split(b"\0")[0])


def _asked(question: Callable[[], Any]) -> Any:
    """The answer, or None: devices differ in what they tell."""
    try:
        return question()
    except Exception:
        return None


def _reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    mask = _asked(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0
    return tuple(name.lower().replace("_", " ") for name in _REASONS if mask & _bit(nvml, name))


def _bit(nvml: Any, name: str) -> int:
    """Named event reasons since driver 535, throttle reasons before."""
    spelled = "".join(part.capitalize() for part in name.split("_"))
    for prefix in ("nvmlClocksEventReason", "nvmlClocksThrottleReason"):
        if hasattr(nvml, prefix + spelled):
            return int(getattr(nvml, prefix + spelled))
    return 0


def _is_strange(process: Any) -> bool:
    """Whether it is neither this one nor comes from it."""
    return os.getpid() not in _lineage(process.pid)


def _lineage(pid: int) -> Iterator[int]:
    """A process and those that it comes from, as far as they can be seen."""
    with suppress(OSError, ValueError, IndexError):
        while pid > 1:
            yield pid
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
