"""What code is generated for: a device's limits as data, so that kernels never see a live device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A device's identity and limits. Bytes, elements and counts; no handle, so it can be pickled and stored.

    `api` names the way to the device ("OpenCL", "CUDA", "fake"), `kind` is "CPU" or "GPU", `architecture` is what a
    compiler is told ("sm_90", "gfx90a", "x86-64"). `selector` finds the device again (`devices.open_device`).
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
        """The device is the host's own CPU: nothing may compile while something is timed on it."""
        return self.kind == "CPU"

    def same_device(self, other: Target) -> bool:
        """Whether both are one kind of device, reached in one way; its limits depend on the driver and do not count."""
        return self.is_called(other.api, other.name, other.architecture)

    def is_called(self, api: str, name: str, architecture: str) -> bool:
        """Whether it is the device with this identity: what is measured on one kind of device holds for all of it. All
        that compares devices (the store, library logic, the library) asks here."""
        return (self.api, self.name, self.architecture) == (api, name, architecture)
