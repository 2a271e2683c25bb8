"""Targets of known architectures, for decisions about a device that is not present.

Sources: NVIDIA's CUDA programming guide (compute capabilities) and data sheets of A100 80GB SXM, H200 SXM and B200;
AMD's data sheets of Instinct MI210 and MI300X. The CPU is a server with 16 cores.
"""

from __future__ import annotations

from tunesmith.records import Target, UserError

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30


def _gpu(api: str, name: str, architecture: str, units: int, local_kib: int, memory_gib: int, cache_mib: int) -> Target:
    return Target(
        api=api,
        selector="",
        name=name,
        kind="GPU",
        architecture=architecture,
        driver="",
        compute_units=units,
        max_work_group_size=1024,
        local_memory_bytes=local_kib * _KIB,
        global_memory_bytes=memory_gib * _GIB,
        max_allocation_bytes=memory_gib * _GIB,
        last_level_cache_bytes=cache_mib * _MIB,
        sub_group_size=32 if api == "CUDA" else 64,
        double_precision=True,
    )


_ALL = (
    _gpu("CUDA", "NVIDIA A100-SXM4-80GB", "sm_80", 108, 163, 80, 40),
    _gpu("CUDA", "NVIDIA H200", "sm_90", 132, 227, 141, 50),
    _gpu("CUDA", "NVIDIA B200", "sm_100", 148, 227, 180, 126),
    _gpu("HIP", "AMD Instinct MI210", "gfx90a", 104, 64, 64, 8),
    _gpu("HIP", "AMD Instinct MI300X", "gfx942", 304, 64, 192, 256),
    Target(
        api="OpenCL",
        selector="",
        name="a CPU of 16 cores",
        kind="CPU",
        architecture="x86-64",
        driver="",
        compute_units=16,
        max_work_group_size=4096,
        local_memory_bytes=512 * _KIB,
        global_memory_bytes=32 * _GIB,
        max_allocation_bytes=8 * _GIB,
        last_level_cache_bytes=32 * _MIB,
        sub_group_size=1,
        double_precision=True,
    ),
)
KNOWN_TARGETS = {target.architecture: target for target in _ALL}
"""The targets by architecture."""


def known_target(architecture: str) -> Target:
    """The target of an architecture. Raises UserError for an architecture that the table lacks."""
    if architecture not in KNOWN_TARGETS:
        names = ", ".join(KNOWN_TARGETS)
        raise UserError("--architecture", f"{architecture!r} is not known here", f"give one of {names}, or a --device")
    return KNOWN_TARGETS[architecture]
