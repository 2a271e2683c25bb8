"""Devices that need not be there: what a kernel family is asked about without one."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.devices.fake import fake_target
from tunesmith.records import Target

_GPU = Target(
    api="CUDA",
    selector="CUDA:0",
    name="a GPU on paper",
    kind="GPU",
    architecture="sm_90",
    driver="1",
    compute_units=132,
    max_work_group_size=1024,
    local_memory_bytes=227 * 1024,
    global_memory_bytes=80 * 2**30,
    max_allocation_bytes=80 * 2**30,
    last_level_cache_bytes=50 * 2**20,
    sub_group_size=32,
    double_precision=True,
)
_OPENCL_GPU = replace(
    _GPU, api="OpenCL", selector="OpenCL:0:0", local_memory_bytes=48 * 1024, max_allocation_bytes=20 * 2**30
)
_OPENCL_CPU = replace(
    _OPENCL_GPU,
    name="a CPU on paper",
    kind="CPU",
    architecture="x86-64",
    compute_units=8,
    max_work_group_size=4096,
    sub_group_size=8,
)

_BY_LANGUAGE = {
    "OpenCL": (_OPENCL_GPU, _OPENCL_CPU),
    "CUDA": (_GPU,),
    "Triton": (_GPU,),
    "BLAS": (_GPU, _OPENCL_CPU),
    "fake": (fake_target("GPU"), fake_target("CPU")),
}


def targets_for(language: str) -> tuple[Target, ...]:
    """Targets on paper that run a language. Raises LookupError for a language that tunesmith does not know."""
    if language not in _BY_LANGUAGE:
        raise LookupError(f"no target on paper runs {language!r}; set `targets`")
    return _BY_LANGUAGE[language]
