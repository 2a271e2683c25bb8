"""Each limit of the wgmma family: the most that is legal, and the least that is not. Neither NVRTC nor a GPU."""

from __future__ import annotations

import dataclasses

import pytest

from cuda_runner import H200
from tunesmith.records import CompiledFacts
from wgmma_cases import DIRECT, FAMILY, config, kind, problem

SMALL = DIRECT | {"WarpGroups": 1, "InstructionColumns": 64, "Stages": 2}
LARGE = {"WarpGroups": 2, "InstructionColumns": 256, "Stages": 0}


def reasons(target=H200, problem_type=None, **values):
    chosen = config(problem_type, **values)
    return [rejection.reason for rejection in FAMILY.rejections(chosen, problem_type or kind(), target)]


def test_the_stages_may_fill_the_shared_memory():
    (launch,) = FAMILY.plan(config(**SMALL), problem(64, 64, 1, 64), H200).steps
    for missing, expected in ((0, []), (1, ["local memory"])):
        target = dataclasses.replace(H200, local_memory_bytes=launch.shared_bytes - missing)
        assert reasons(target, **SMALL) == expected


@pytest.mark.parametrize(
    ("most", "more", "reason"),
    [
        ({"InstructionColumns": 16}, {"InstructionColumns": 24}, "tile shape"),
        ({"InstructionColumns": 256}, {"InstructionColumns": 272}, "tile shape"),
        ({"WarpGroups": 1}, {"WarpGroups": 0}, "work-group size"),
        ({"WarpGroups": 3}, {"WarpGroups": 4}, "work-group size"),
        ({"WarpGroups": 2, "InstructionColumns": 256}, {"WarpGroups": 3, "InstructionColumns": 256}, "registers"),
        ({"WarpGroups": 3, "InstructionColumns": 192}, {"WarpGroups": 3, "InstructionColumns": 208}, "registers"),
        ({"ClusterShape": (2, 4)}, {"ClusterShape": (4, 4)}, "cluster"),
        ({"ClusterShape": (1, 4)}, {"ClusterShape": (1, 8)}, "cluster"),
        ({"ClusterShape": (2, 1)}, {"ClusterShape": (1, 3)}, "cluster"),
        (
            {"ClusterShape": (1, 4), "InstructionColumns": 96},
            {"ClusterShape": (1, 4), "InstructionColumns": 80},
            "cluster",
        ),
        ({"ClusterShape": (1, 1, 8)}, {"ClusterShape": (1, 1, 9)}, "cluster"),
        ({"ClusterShape": (1, 1, 2)}, {"ClusterShape": (1, 2, 2)}, "cluster"),
        ({"ClusterShape": (1, 1, 2), "GlobalSplitU": 2}, {"ClusterShape": (1, 1, 2), "StreamKGrid": 2}, "cluster"),
        ({"ClusterShape": (1, 1, 0)}, {"ClusterShape": (1, 0, 0)}, "cluster"),
        ({"ClusterShape": (1, 1, 2)}, {"ClusterShape": (1, 1, 1)}, "cluster"),
        (LARGE | {"ClusterShape": (1, 1, 2)}, LARGE | {"ClusterShape": (1, 1, 3)}, "local memory"),
        ({"Stages": 2}, {"Stages": 1}, "local memory"),
        ({"StreamKGrid": 132}, {"StreamKGrid": 133}, "stream-K"),
        ({"StreamKGrid": 1, "GlobalSplitU": 1}, {"StreamKGrid": 1, "GlobalSplitU": 2}, "stream-K"),
        ({"StreamKGrid": 2, "ClusterShape": (1, 2)}, {"StreamKGrid": 3, "ClusterShape": (1, 2)}, "stream-K"),
        ({"StreamKGrid": 120, "ClusterShape": (2, 2)}, {"StreamKGrid": 124, "ClusterShape": (2, 2)}, "stream-K"),
        ({"StreamKGrid": 120, "ClusterShape": (2, 4)}, {"StreamKGrid": 128, "ClusterShape": (2, 4)}, "stream-K"),
        ({"GlobalSplitU": 15, "ClusterShape": (2, 4)}, {"GlobalSplitU": 16, "ClusterShape": (2, 4)}, "global split"),
        ({"GlobalSplitU": 132}, {"GlobalSplitU": 133}, "global split"),
        ({"StreamKGrid": 1, "StreamKFullTiles": 1}, {"StreamKFullTiles": 1}, "stream-K"),
    ],
)
def test_a_configuration_may_reach_its_limit_and_not_exceed_it(most, more, reason):
    assert reasons(**{**SMALL, **most}) == []
    assert reason in reasons(**{**SMALL, **more})


def test_an_instruction_may_take_all_registers_that_a_work_item_has_at_launch():
    """With 512 work-items that are 128: half of the columns and 26."""
    for columns, fits in ((204, True), (206, False)):
        assert ("registers" not in reasons(**{**SMALL, "WarpGroups": 3, "InstructionColumns": columns})) is fits


def test_a_copy_of_an_operand_is_a_launch_with_limits_too():
    """TMA takes neither operand as it lies. The copy of A has 2^32 work-groups and more, that of B few."""
    asked = dataclasses.replace(problem(2**30, 8, 1, 8193), leading=(2**30, 2**30, 8193, 8193))
    assert "grid" in {rejection.reason for rejection in FAMILY.rejections_for(config(**SMALL), asked, H200)}


@pytest.mark.parametrize("shared", [{"GlobalSplitU": 2}, {"StreamKGrid": 2}])
def test_iterations_that_are_shared_are_counted_in_32_bits(shared):
    for iterations, is_told in ((2**31 - 1, False), (2**31, True)):
        found = FAMILY.rejections_for(config(**SMALL, **shared), problem(64, 64, 1, 64 * iterations), H200)
        assert any("iterations to share" in rejection.detail for rejection in found) is is_told


def test_boxes_of_64_columns_that_are_not_contiguous_along_k_count_whole_as_shared_memory():
    """80 columns and 64 rows of 128 bytes a stage, or 128 columns: 12 stages fit into 227 KiB, or 9."""
    for layout, fits in (("tn", 12), ("nn", 9)):
        for stages, expected in ((fits, []), (fits + 1, ["local memory"])):
            values = {**SMALL, "InstructionColumns": 80, "Stages": stages}
            assert reasons(problem_type=kind(layout=layout), **values) == expected


def test_tma_stores_16_bits_and_the_work_items_store_32():
    single = kind(dest="s")
    assert reasons(problem_type=single, **SMALL) == []
    assert reasons(problem_type=single, **{**SMALL, "StorePath": "TMA"}) == ["store path"]
    assert reasons(**{**SMALL, "StorePath": "TMA"}) == []


def test_work_items_may_spill_64_bytes():
    def found(spilled):
        return [
            r.reason for r in FAMILY.rejections_compiled(config(), [CompiledFacts("gemm", spill_bytes=spilled)], H200)
        ]

    assert found(None) == found(0) == found(64) == []
    assert found(65) == ["spills"]


def test_every_part_of_a_split_has_an_iteration():
    """Of 64 steps along K: 128 has two of them, 129 has three."""
    for k, parts in ((128, 2), (129, 3)):
        for more, expected in ((0, set()), (1, {"global split"})):
            chosen = config(**{**SMALL, "GlobalSplitU": parts + more})
            assert {r.reason for r in FAMILY.rejections_for(chosen, problem(64, 64, 1, k), H200)} == expected


def test_every_work_group_along_k_has_an_iteration_of_every_part():
    for k, along_k in ((256, 2), (384, 3)):
        for more, expected in ((0, set()), (1, {"global split"})):
            chosen = config(**{**SMALL, "GlobalSplitU": 2, "ClusterShape": (1, 1, along_k + more)})
            assert {r.reason for r in FAMILY.rejections_for(chosen, problem(64, 64, 1, k), H200)} == expected


def test_clusters_that_wait_for_each_other_run_at_once():
    """132 multiprocessors have room for 15 clusters of 8 work-groups that fill one each: 7 tiles in two parts."""
    for stages in (0, 2):
        chosen = config(**{**SMALL, "Stages": stages, "GlobalSplitU": 2, "ClusterShape": (1, 1, 8)})
        for tiles, expected in ((7, set()), (8, {"global split"})):
            found = FAMILY.rejections_for(chosen, problem(64, 64 * tiles, 1, 4096), H200)
            assert {rejection.reason for rejection in found} == expected
    whole = config(**{**SMALL, "Stages": 0, "ClusterShape": (1, 1, 8)})
    assert not list(FAMILY.rejections_for(whole, problem(64, 64 * 100, 1, 4096), H200))


@pytest.mark.parametrize(("shape", "groups"), [((1, 1), 132), ((1, 2), 132), ((2, 2), 120), ((4, 2), 120)])
def test_a_launch_of_many_tiles_has_as_many_work_groups_as_run_at_once(shape, groups):
    """Clusters of four and of eight leave 12 of 132 multiprocessors idle."""
    asked = problem(64 * 64, 64 * 64, 1, 256)
    for values in ({}, {"GlobalSplitU": 3}):
        chosen = config(**{**SMALL, "Stages": 0, "ClusterShape": shape, **values})
        (launch,) = FAMILY.plan(chosen, asked, H200).steps
        assert launch.grid == (groups, 1, 1)


@pytest.mark.parametrize(("units", "grids"), [(132, (0, 66, 120, 132)), (114, (0, 57, 96, 114)), (16, (0, 8, 16))])
def test_the_grids_of_stream_k_differ_on_every_device(units, grids):
    target = dataclasses.replace(H200, compute_units=units)
    assert FAMILY.space(kind(), target)["StreamKGrid"].values == grids


@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (0, 1), (1, 16)])
def test_a_wrong_cluster_is_refused_for_nothing_that_follows_from_it(shape):
    assert reasons(**{**SMALL, "ClusterShape": shape, "StreamKGrid": 132}) == ["cluster"]


def test_as_many_parts_as_fill_the_device_are_none_where_the_tiles_do():
    """66 clusters of two run at once."""
    chosen = config(**{**SMALL, "Stages": 0, "ClusterShape": (1, 1, 0)})
    for tiles, expected in ((66, set()), (67, {"global split"})):
        found = FAMILY.rejections_for(chosen, problem(64, 64 * tiles, 1, 4096), H200)
        assert {rejection.reason for rejection in found} == expected


@pytest.mark.parametrize(
    ("tiles", "k", "parts"),
    [
        (1, 4096, 8),
        (1, 192, 3),
        (16, 4096, 6),
        (20, 4096, 5),
        (39, 4096, 3),
        (40, 4096, 2),
        (45, 65536, 2),
        (1, 1024, 4),
    ],
)
def test_parts_fill_the_device_and_have_an_iteration_each(tiles, k, parts):
    chosen = config(**{**SMALL, "Stages": 0, "ClusterShape": (1, 1, 0)})
    (launch,) = FAMILY.plan(chosen, problem(64, 64 * tiles, 1, k), H200).steps
    assert (launch.cluster, launch.grid) == (parts, (tiles * parts, 1, 1))


def test_a_batch_has_at_most_65535_matrices():
    for batch, expected in ((65_535, set()), (65_536, {"grid"})):
        found = FAMILY.rejections_for(config(**SMALL), problem(8, 8, batch, 8), H200)
        assert {rejection.reason for rejection in found} == expected
