"""No legal configuration launches a grid that a device refuses, however long the batch and in however many parts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuda_runner import H200
from portblas_kernels import GPU
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Launch, Problem

MOST = (2**31 - 1, 65_535, 65_535)
"""Work-groups along x, y and z: CUDA's limits, which NVIDIA's OpenCL has too. Written down once more, so that the
families' own limits are tested against them."""

FAMILIES = {
    "TiledGemm": {},
    "RegisterGemm": {},
    "BlockedGemm": {"DepthU": 64, "MacroTile": (64, 12)},
    "CudaSimtGemm": {},
    "CudaWgmmaGemm": {"StorePath": "Direct"},
    "TritonTmaGemm": {"DepthU": 16},
    "TritonGemm": {},
    "TritonGemv": {},
    "PortBlasGemm": {},
    "PortBlasCuda": {},
}
"""Of each family something that runs at every size below."""
WITH_PARTS = {
    "TiledGemm": {},
    "RegisterGemm": {},
    "CudaSimtGemm": {},
    "CudaWgmmaGemm": {},
    "TritonGemv": {},
    "TritonGemm": {"Schedule": "SplitK"},
}
"""Those that have GlobalSplitU, with what else it takes."""
CASES = [(name, 1, batch) for name in FAMILIES for batch in (4, 65_535, 65_536)]
CASES += [(name, 2, batch) for name in WITH_PARTS for batch in (4, 32_767, 32_768)]
"""Batches that fit, that just fit, and one matrix more: in one part and in two."""


def launched(name, batch, parts):
    """The grids of a product of a batch, or None where the family refuses it."""
    family, kind = KERNELS[name], gemm_type("h" if "Wgmma" in name else "s", transpose_b=False, batched=True)
    target = GPU if family.language == "OpenCL" else H200
    target = replace(target, kind="CPU") if name == "BlockedGemm" else target
    defaults = family.space(kind, target).defaults | FAMILIES[name]
    config = defaults | ({"GlobalSplitU": parts, **WITH_PARTS[name]} if parts > 1 else {})
    assert not list(family.rejections(config, kind, target))
    # Rows of 40 bytes, which a tensor map does not take: the family for it makes an aligned copy of A first.
    problem = Problem(kind, (20, 1 if name == "TritonGemv" else 16, batch, 4096))
    if refused := list(family.rejections_for(config, problem, target)):
        assert {rejection.reason for rejection in refused} <= {"grid"}, refused
        return None
    return [step.grid for step in family.plan(config, problem, target).steps if isinstance(step, Launch)]


@pytest.mark.parametrize(("name", "parts", "batch"), CASES)
def test_what_is_legal_can_be_launched(name, parts, batch):
    grids = launched(name, batch, parts)
    assert grids or batch > 4, "a small batch is legal, and launches something"
    assert all(size <= most for grid in grids or () for size, most in zip(grid, MOST, strict=True))


def test_every_family_of_products_is_tried():
    products = {name for name in KERNELS if KERNELS[name].operation == "GEMM"}
    assert products - set(FAMILIES) == {"VendorBlas", "FakeGemm"}, "which launch no grid of ours"
    with_parts = {name for name in FAMILIES if "GlobalSplitU" in KERNELS[name].space(gemm_type()).defaults}
    assert with_parts == set(WITH_PARTS)
