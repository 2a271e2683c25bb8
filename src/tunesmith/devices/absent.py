"""Targets for devices that are not present, so that kernels can be compiled for them."""

from __future__ import annotations

from tunesmith.records import Target, UserError
from tunesmith.toolchains import TOOLCHAINS

LANGUAGE, API = "CUDA", "CUDA"

SHARED_KIB = {
    **dict.fromkeys((75,), 64),
    **dict.fromkeys((80, 87), 163),
    **dict.fromkeys((86, 88, 89, 120, 121), 99),
    **dict.fromkeys((90, 100, 103, 110), 227),
}
"""Shared memory that one block may ask for, in KiB, by compute capability. Source: CUDA programming guide, technical
specifications; a kibibyte of each multiprocessor's shared memory is reserved for the system."""

LEAST_SHARED_KIB = 48
"""Every device has at least this much. Used for devices that are newer than the table."""

MOST_THREADS, WARP = 1024, 32
"""These are the same for every compute capability so far."""

_MEASURED_ELSEWHERE = "tune it where it is, through OpenCL, or give rocRAND's benchmarks of it to random select"


def absent_target(architecture: str) -> Target:
    """The Target of any device of an architecture (`sm_90`), as far as a compiler needs it.

    Limits are those of the architecture. Fields that only a device knows are 0 (compute units, memory, caches) or empty
    (selector, driver), and no compilation may depend on them. Raises UserError for an architecture that cannot be
    compiled for.
    """
    if architecture.startswith("gfx"):
        what = f"{architecture} needs a HIP compiler, and tunesmith has none"
        raise UserError("--arch", what, f"give an NVIDIA architecture such as sm_90; {_MEASURED_ELSEWHERE}")
    compiler = TOOLCHAINS[LANGUAGE]
    if missing := compiler.unavailable():
        raise UserError("--arch", f"{architecture} needs NVRTC, which is not here", missing)
    if architecture not in (supported := compiler.architectures()):
        what = f"NVRTC does not compile for {architecture!r}"
        raise UserError(
            "--arch", what, f"this one ({compiler.version(_target(architecture))}) has {', '.join(supported)}"
        )
    return _target(architecture)


def _target(architecture: str) -> Target:
    capability = architecture.removeprefix("sm_")
    shared = SHARED_KIB.get(int(capability), LEAST_SHARED_KIB) if capability.isdecimal() else LEAST_SHARED_KIB
    return Target(
        api=API,
        selector="",
        name=architecture,
        kind="GPU",
        architecture=architecture,
        driver="",
        compute_units=0,
        max_work_group_size=MOST_THREADS,
        local_memory_bytes=shared * 1024,
        global_memory_bytes=0,
        max_allocation_bytes=0,
        last_level_cache_bytes=0,
        sub_group_size=WARP,
        double_precision=True,
    )
