"""The Target of a CUDA device."""

from __future__ import annotations

import contextlib
from typing import Any

from tunesmith.records import Target

from .driver import bindings, call


def cuda_target(ordinal: int) -> Target:
    """The Target of a device by its number; needs no context. Raises LaunchError."""
    device = call("cuDeviceGet", ordinal)

    def attribute(name: str) -> int:
        return int(
            call("cuDeviceGetAttribute", getattr(bindings().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), device)
        )

    memory = int(call("cuDeviceTotalMem", device))
    return Target(
        api="CUDA",
        selector=f"CUDA:{ordinal}",
        name=_text(call("cuDeviceGetName", 256, device)),
        kind="GPU",
        architecture=f"sm_{attribute('COMPUTE_CAPABILITY_MAJOR')}{attribute('COMPUTE_CAPABILITY_MINOR')}",
        driver=_driver_version(),
        compute_units=attribute("MULTIPROCESSOR_COUNT"),
        max_work_group_size=attribute("MAX_THREADS_PER_BLOCK"),
        local_memory_bytes=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        global_memory_bytes=memory,
        max_allocation_bytes=memory,
        last_level_cache_bytes=attribute("L2_CACHE_SIZE"),
        sub_group_size=attribute("WARP_SIZE"),
        double_precision=True,
    )


def _text(raw: bytes | str) -> str:
    return (raw if isinstance(raw, str) else raw.split(b"\0")[0].decode()).strip()


def _driver_version() -> str:
    """`580.159.04 (CUDA 13.0)`, or `CUDA 13.0` without NVIDIA's management library."""
    version = int(call("cuDriverGetVersion"))
    cuda = f"CUDA {version // 1000}.{version % 1000 // 10}"
    with contextlib.suppress(Exception):  # any error of the management library: it only makes the name nicer
        pynvml: Any = __import__("pynvml")
        pynvml.nvmlInit()
        try:
            return f"{_text(pynvml.nvmlSystemGetDriverVersion())} ({cuda})"
        finally:
            pynvml.nvmlShutdown()
    return cuda
