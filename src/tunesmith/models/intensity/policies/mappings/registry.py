"""The mappings by the name of the kernel family."""

from __future__ import annotations

from tunesmith.records import Registry

from .base import FamilyMapping

_HERE = "tunesmith.models.intensity.policies.mappings"

MAPPINGS: Registry[FamilyMapping] = Registry(
    "mapping of a kernel family",
    {
        "CudaWgmmaGemm": f"{_HERE}.wgmma:WgmmaMapping",
        "TritonGemm": f"{_HERE}.triton:TritonMapping",
        "TritonTmaGemm": f"{_HERE}.triton:TritonTmaMapping",
        "TritonGemv": f"{_HERE}.triton_gemv:TritonGemvMapping",
        "CudaSimtGemm": f"{_HERE}.work_items:CudaSimtMapping",
        "TiledGemm": f"{_HERE}.work_items:TiledMapping",
        "RegisterGemm": f"{_HERE}.register:RegisterMapping",
        "BlockedGemm": f"{_HERE}.blocked:BlockedMapping",
        "PortBlasGemm": f"{_HERE}.portblas:PortBlasMapping",
        "PortBlasCuda": f"{_HERE}.portblas:PortBlasMapping",
        "VendorBlas": f"{_HERE}.vendor:VendorMapping",
    },
    group="tunesmith.policy_mappings",
)


def mapping_of(kernel: str) -> FamilyMapping | None:
    """The mapping of a family; None if it has none."""
    if kernel not in MAPPINGS:
        return None
    return MAPPINGS[kernel]
