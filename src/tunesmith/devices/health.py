"""The state of a device while it works: clock, temperature, other processes. Read, never changed."""

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
"""NVML's `nvmlClocksEventReason...`, without the harmless ones."""


@dataclass(frozen=True, slots=True)
class Health:
    """The state at one moment: MHz of the multiprocessors, degrees Celsius, watts; None if the device does not tell.

    `throttled` are the reasons for a lower clock. `others` counts processes on the device that are not ours. If the
    device is the host's CPU, `busy` is the host's load average, in processors.
    """

    clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: tuple[str, ...] = ()
    others: int | None = None
    busy: float | None = None


def device_health(target: Target) -> Health:
    """The device's state now."""
    if target.api == "CUDA":
        return _of_gpu(target)
    if target.shares_the_host:
        return Health(busy=os.getloadavg()[0])
    return Health()


def _of_gpu(target: Target) -> Health:
    """The state by NVIDIA's management library; empty if the library is not installed or does not answer."""
    try:
        nvml: Any = __import__("pynvml")
        nvml.nvmlInit()
    except Exception:
        return Health()
    try:
        handle = _handle(nvml, target)
        return Health(
            _value_or_none(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            _value_or_none(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            _value_or_none(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            _reasons(nvml, handle),
            _value_or_none(lambda: sum(map(_is_foreign, nvml.nvmlDeviceGetComputeRunningProcesses(handle)))),
        )
    except Exception:
        return Health()
    finally:
        nvml.nvmlShutdown()


def _handle(nvml: Any, target: Target) -> Any:
    """The management library's handle, found by the PCI bus, since CUDA numbers devices differently."""
    call("cuInit", 0)
    ordinal = int(target.selector.partition(":")[2])
    bus = call("cuDeviceGetPCIBusId", 32, call("cuDeviceGet", ordinal))
    return nvml.nvmlDeviceGetHandleByPciBusId(bytes(bus).split(b"\0")[0])


def _value_or_none(query: Callable[[], Any]) -> Any:
    """The value of a query; None if the device does not support it."""
    try:
        return query()
    except Exception:
        return None


def _reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    mask = _value_or_none(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    return tuple(name.lower().replace("_", " ") for name in _REASONS if mask and mask & _bit(nvml, name))


def _bit(nvml: Any, name: str) -> int:
    """The bit of a reason. Its name says "event reason" since driver 535, and "throttle reason" before."""
    suffix = "".join(part.capitalize() for part in name.split("_"))
    for prefix in ("nvmlClocksEventReason", "nvmlClocksThrottleReason"):
        if hasattr(nvml, prefix + suffix):
            return int(getattr(nvml, prefix + suffix))
    return 0


def _is_foreign(process: Any) -> bool:
    """Whether a process is neither this process nor its descendant."""
    return os.getpid() not in _lineage(process.pid)


def _lineage(pid: int) -> Iterator[int]:
    """A process and its ancestors, as far as they are visible."""
    with suppress(OSError, ValueError, IndexError):
        while pid:
            yield pid
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
