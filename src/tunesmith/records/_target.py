"""The target of code generation: a device's identity and limits as data, so that kernels never see a live device."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_PART = re.compile(r" \(\d+ of \d+ cores\)$")
_CUDA = re.compile(r"CUDA (\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Target:
    """A device's identity and limits. There is no handle in it, so it can be pickled and stored.

    `api` is the device's API ("OpenCL", "CUDA", "fake"), `kind` is "CPU" or "GPU", `architecture` is the compiler's
    name for it ("sm_90", "gfx90a", "x86-64"). `selector` finds the device again (`devices.open_device`).
    """

    api: str
    selector: str
    name: str
    kind: str
    architecture: str
    driver: str
    compute_units: int
    max_work_group_size: int
    local_memory_bytes: int
    global_memory_bytes: int
    max_allocation_bytes: int
    last_level_cache_bytes: int
    sub_group_size: int
    double_precision: bool

    @property
    def shares_the_host(self) -> bool:
        """Whether the device is the host's own CPU. Then nothing may be compiled while something is timed on it."""
        return self.kind == "CPU"

    @property
    def can_wait_for_launches(self) -> bool:
        """Whether a program can wait itself for the launch before it in the stream (PTX ISA, griddepcontrol)."""
        number = self.architecture.removeprefix("sm_").rstrip("af")
        return number.isdecimal() and int(number) >= 90

    @property
    def starts_early(self) -> bool:
        """Whether a launch may start while the launch before it still runs, if its program waits for that one.

        From CUDA 12.3 on: graphs have no such launches before (CUDA runtime API, cudaGraphKernelNodePortProgrammatic).
        """
        version = _CUDA.search(self.driver)
        is_new = version is not None and tuple(map(int, version.groups())) >= (12, 3)
        return self.api == "CUDA" and self.can_wait_for_launches and is_new

    def part(self, cores: str) -> Target:
        """Some of a CPU's cores ("4 of 16 cores") as a device of its own: its times are not those of the whole."""
        return replace(self, name=f"{self.name} ({cores})")

    def same_device(self, other: Target) -> bool:
        """Whether both are the same kind of device with the same API. Limits depend on the driver and are ignored."""
        return self.is_called(other.api, other.name, other.architecture)

    def is_called(self, api: str, name: str, architecture: str) -> bool:
        """Whether the target has this identity. Measurements hold for all devices of one kind, so this is how the
        store, library logic and the library compare devices."""
        return (self.api, self.name, self.architecture) == (api, name, architecture)


def whole_device(name: str) -> str:
    """The name of the device of which the named one is a part; the name itself if it is no part."""
    return _PART.sub("", name)
