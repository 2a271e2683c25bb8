"""An OpenCL device as data."""

from __future__ import annotations

import os
import platform as host
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyopencl as cl

from tunesmith.records import Target

GPU_CACHE_FLOOR = 64 << 20
"""NVIDIA's OpenCL only reports the first-level caches. Second-level caches of today's GPUs have at most about this."""


def describe(device: Any, selector: str) -> Target:
    """The record of a live OpenCL device."""
    is_cpu = bool(device.type & cl.device_type.CPU)
    return Target(
        api="OpenCL",
        selector=selector,
        name=device.name.strip(),
        kind="CPU" if is_cpu else "GPU",
        architecture=_architecture(device, is_cpu),
        driver=f"{device.platform.name} {device.platform.version.strip()}, driver {device.driver_version}",
        compute_units=device.max_compute_units,
        max_work_group_size=device.max_work_group_size,
        local_memory_bytes=device.local_mem_size,
        global_memory_bytes=_physical_memory() if is_cpu else device.global_mem_size,
        max_allocation_bytes=device.max_mem_alloc_size,
        last_level_cache_bytes=max(device.global_mem_cache_size, _host_cache() if is_cpu else GPU_CACHE_FLOOR),
        sub_group_size=_sub_group(device, is_cpu),
        double_precision="cl_khr_fp64" in device.extensions.split(),
    )


def _architecture(device: Any, is_cpu: bool) -> str:
    if is_cpu:
        return host.machine().replace("_", "-")
    with suppress(cl.Error, AttributeError):
        return f"sm_{device.compute_capability_major_nv}{device.compute_capability_minor_nv}"
    return str(device.name).partition(":")[0]


def _sub_group(device: Any, is_cpu: bool) -> int:
    """Work-items that run in step: a warp, a wavefront, or a CPU's vector of floats; 1 if unknown."""
    for query in ("warp_size_nv", "wavefront_width_amd", *(["native_vector_width_float"] if is_cpu else [])):
        with suppress(cl.Error, AttributeError):
            return max(1, int(getattr(device, query)))
    return 1


def _physical_memory() -> int:
    """Bytes of the host's memory. (PoCL reports the memory that is free when PoCL starts, which changes.)"""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _host_cache() -> int:
    """The largest cache of the first core in bytes, by Linux's sysfs; 0 without sysfs."""
    units = {"K": 1 << 10, "M": 1 << 20}
    texts = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(text[:-1]) * units[text[-1]] for text in texts if text[-1:] in units), default=0)
