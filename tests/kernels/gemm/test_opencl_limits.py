"""Each limit of the OpenCL families: the most that is legal, and the least that is not. No device needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portblas_kernels import GPU
from tunesmith.kernels import KERNELS
from tunesmith.problems import storage_bytes
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import CompiledFacts, Problem

TILED, REGISTER = KERNELS["TiledGemm"], KERNELS["RegisterGemm"]
NT = gemm_type("s", batched=True)
WIDE = {"WorkGroup": (1, 2, 1), "ThreadTile": (32, 8), "LoopUnroll": 4}
"""Of the RegisterGemm: tiles of 32 x 16, in steps of 4 along K."""
SINGLE = {"WorkGroup": (1, 1, 1), "ThreadTile": (1, 1)}
"""Of the TiledGemm: a work-group for each element of D."""


def config(family, **values):
    return family.space(NT).defaults | values


def reasons(family, target=GPU, **values):
    return [rejection.reason for rejection in family.rejections(config(family, **values), NT, target)]


def refused(family, sizes, target=GPU, **values):
    """The reasons against a problem of M, N, batch and K."""
    return {found.reason for found in family.rejections_for(config(family, **values), Problem(NT, sizes), target)}


@pytest.mark.parametrize(
    ("family", "most", "more", "reason"),
    [
        (TILED, {"GlobalSplitU": 65_535}, {"GlobalSplitU": 65_536}, "global split"),
        (TILED, {"StreamKGrid": 2**31 - 1}, {"StreamKGrid": 2**31}, "stream-K"),
        (TILED, {"StreamKGrid": 1, "GlobalSplitU": 1}, {"StreamKGrid": 1, "GlobalSplitU": 2}, "stream-K"),
        (TILED, {"StreamKGrid": 1, "StreamKFullTiles": 1}, {"StreamKFullTiles": 1}, "stream-K"),
        (REGISTER, WIDE | {"LoopUnroll": 128}, WIDE | {"LoopUnroll": 129}, "unrolled code"),
        (TILED, {"DepthU": 8, "LoopUnroll": 8}, {"DepthU": 8, "LoopUnroll": 16}, "depth"),
        (TILED, {"WorkGroup": (8, 8, 2), "DepthU": 16}, {"WorkGroup": (8, 8, 2), "DepthU": 17}, "depth"),
    ],
)
def test_a_configuration_may_reach_its_limit_and_not_exceed_it(family, most, more, reason):
    assert reasons(family, **most) == []
    assert reason in reasons(family, **more)


@pytest.mark.parametrize("shared", [{"GlobalSplitU": 2}, {"StreamKGrid": 1}])
def test_a_k_that_is_shared_needs_the_work_items_that_add_the_parts(shared):
    """These are 256, however small the work-groups of the product."""
    small = {"WorkGroup": (8, 8, 1), **shared}
    assert reasons(TILED, replace(GPU, max_work_group_size=256), **small) == []
    assert reasons(TILED, replace(GPU, max_work_group_size=255), **small) == ["work-group size"]
    whole = small | {"GlobalSplitU": 1, "StreamKGrid": 0}
    assert reasons(TILED, replace(GPU, max_work_group_size=64), **whole) == []
    assert reasons(REGISTER, replace(GPU, max_work_group_size=1), WorkGroup=(1, 1, 1)) == []


@pytest.mark.parametrize(
    ("entry", "items"), [("pack_A", 1), ("gemm", 64), ("sum_of_splits", 256), ("sum_of_shares", 256)]
)
def test_a_compiled_program_must_allow_the_work_items_that_it_is_launched_with(entry, items):
    def found(allowed):
        facts = [CompiledFacts(entry, max_work_group_size=allowed)]
        return [r.reason for r in TILED.rejections_compiled(config(TILED, WorkGroup=(8, 8, 1)), facts, GPU)]

    assert found(items) == []
    assert found(items - 1) == ["work-group size"]


def test_a_loop_has_at_least_one_step():
    """A depth of one step is legal; a depth that is less than one for each part of K is not, and says so."""
    assert REGISTER.derived(config(REGISTER, DepthU=1))["LoopUnroll"] == 1
    assert reasons(REGISTER, DepthU=1) == []
    shallow = config(TILED, WorkGroup=(8, 8, 2), DepthU=1)
    assert TILED.derived(shallow)["LoopUnroll"] == 1
    assert "depth" in reasons(TILED, WorkGroup=(8, 8, 2), DepthU=1)


@pytest.mark.parametrize(("index", "tile"), [(0, 32), (1, 16), (3, 4)])
def test_sizes_rounded_up_to_whole_tiles_are_counted_in_32_bits(index, tile):
    """M, N and K, with tiles of 32 x 16 in steps of 4."""
    sizes = [1, 1, 1, 1]
    sizes[index] = 2**31 - 1 - tile
    assert "index range" not in refused(REGISTER, tuple(sizes), **WIDE)
    sizes[index] += 1
    assert "index range" in refused(REGISTER, tuple(sizes), **WIDE)


@pytest.mark.parametrize(
    ("sizes", "values", "is_legal"),
    [
        ((2**16, 2**15 - 1, 1, 1), {}, True),
        ((2**16, 2**15, 1, 1), {}, False),
        ((1, 1, 1, 1), {"WorkGroupMapping": 2**31 - 1}, True),
        ((1, 1, 1, 1), {"WorkGroupMapping": 2**31}, False),
        ((2, 1, 1, 1), {"WorkGroupMapping": 2**30}, False),
        ((1, 1, 65_535, 1), {}, True),
        ((1, 1, 65_536, 1), {}, False),
        ((1, 1, 21_845, 1), {"GlobalSplitU": 3}, True),
        ((1, 1, 21_846, 1), {"GlobalSplitU": 3}, False),
    ],
)
def test_tiles_and_blocks_of_tiles_are_counted_in_32_bits_and_matrices_in_16(sizes, values, is_legal):
    assert ("grid" not in refused(TILED, sizes, **SINGLE, **values)) is is_legal


def test_buffers_may_fill_what_the_device_has():
    """The largest by itself, and all of them together."""
    asked, split = Problem(NT, (100, 50, 2, 70)), {"GlobalSplitU": 16}
    operands = [storage_bytes(operand) for operand in GemmOperation().operands(asked)]
    workspace = TILED.plan(config(TILED, **split), asked, GPU).workspace_bytes
    assert workspace > max(operands)
    everything = sum(operands) + workspace
    for field, most, reason in (
        ("max_allocation_bytes", workspace, "maximum allocation"),
        ("global_memory_bytes", everything, "device memory"),
    ):
        assert refused(TILED, asked.sizes, replace(GPU, **{field: most}), **split) == set()
        assert refused(TILED, asked.sizes, replace(GPU, **{field: most - 1}), **split) == {reason}
