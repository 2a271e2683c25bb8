"""Each limit of the Triton families: the most that is legal, and the least that is not. Neither Triton nor a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuda_runner import H200, configuration
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import CompiledFacts, Problem

DENSE = KERNELS["TritonGemm"]
MI300 = replace(H200, api="HIP", architecture="gfx942", sub_group_size=64, local_memory_bytes=65536)
BY_ITEMS = {"LoadPath": "Pointer", "MacroTile": (128, 128), "DepthU": 64, "NumWarps": 8}


def kind(data_type="h", **more):
    return gemm_type(data_type, **{"transpose_a": True, "transpose_b": False, "batched": True, **more})


def reasons(problem_type=None, target=H200, **values):
    problem_type = problem_type or kind()
    chosen = configuration(DENSE, problem_type, **values)
    return [rejection.reason for rejection in DENSE.rejections(chosen, problem_type, target)]


def refused(sizes, leading=(), problem_type=None, target=H200, **values):
    problem_type = problem_type or kind()
    chosen, asked = configuration(DENSE, problem_type, **values), Problem(problem_type, sizes, leading)
    return {rejection.reason for rejection in DENSE.rejections_for(chosen, asked, target)}


@pytest.mark.parametrize(("data_type", "shortest"), [("i8", 4), ("h", 2), ("s", 1)])
def test_loads_of_4_bytes_are_copied_to_shared_memory_and_shorter_ones_are_not(data_type, shortest):
    """Of the stages, one stays in registers. What is not copied takes no shared memory between the stages."""
    element = 4 // shortest
    stage = (128 + 128) * 64 * element
    values = {**BY_ITEMS, "GlobalReadVectorWidth": shortest, "NumStages": 3}
    fitting, tight = (replace(H200, local_memory_bytes=2 * stage - missing) for missing in (0, 1))
    assert reasons(kind(data_type), fitting, **values) == []
    assert reasons(kind(data_type), tight, **values) == ["local memory"]
    nothing = replace(H200, local_memory_bytes=0)
    for narrow in range(1, shortest):
        found = reasons(kind(data_type), nothing, **{**values, "GlobalReadVectorWidth": narrow})
        assert found == (["power of two"] if narrow == 3 else [])


@pytest.mark.parametrize(
    ("most", "more", "reason"),
    [
        ({"NumStages": 8, "MacroTile": (32, 32)}, {"NumStages": 9, "MacroTile": (32, 32)}, "warps and stages"),
        ({"NumWarps": 8}, {"NumWarps": 16}, "warps and stages"),
        ({"MacroTile": (16, 16)}, {"MacroTile": (16, 8)}, "tile shape"),
        ({"MacroTile": (256, 64), "NumStages": 2}, {"MacroTile": (512, 64), "NumStages": 2}, "tile shape"),
        ({"DepthU": 16}, {"DepthU": 8}, "tile shape"),
        (
            {"MacroTile": (32, 64), "EpilogueSubtile": 2},
            {"MacroTile": (32, 64), "EpilogueSubtile": 4},
            "epilogue parts",
        ),
        (
            {"MacroTile": (64, 32), "EpilogueSubtile": 2, "SwapOperands": False},
            {"MacroTile": (64, 32), "EpilogueSubtile": 4, "SwapOperands": False},
            "epilogue parts",
        ),
        ({"StoreVectorWidth": 8}, {"StoreVectorWidth": 16}, "vector width"),
        (
            {"LoadPath": "Pointer", "GlobalReadVectorWidth": 8},
            {"LoadPath": "Pointer", "GlobalReadVectorWidth": 16},
            "vector width",
        ),
    ],
)
def test_a_configuration_may_reach_its_limit_and_not_exceed_it(most, more, reason):
    assert reasons(**most) == []
    assert reason in reasons(**more)


@pytest.mark.parametrize(("data_type", "widest"), [("s", 4), ("h", 8), ("i8", 16)])
def test_a_load_has_at_most_16_bytes(data_type, widest):
    values = {"LoadPath": "Pointer", "DepthU": 32, "MacroTile": (64, 64)}
    for width, expected in ((widest, []), (2 * widest, ["vector width"])):
        assert reasons(kind(data_type), **values, GlobalReadVectorWidth=width) == expected


def test_a_work_item_has_at_most_255_sums():
    """Of 128 work-items. A side of 255 is no power of two, which is another reason."""
    for side, fits in ((255, True), (256, False)):
        assert ("registers" not in reasons(MacroTile=(side, 128), NumWarps=4)) is fits


@pytest.mark.parametrize(
    ("data_type", "precision", "target", "expected"),
    [
        ("s", "ieee", MI300, []),
        ("s", "tf32x3", MI300, ["input precision"]),
        ("s", "tf32x3", H200, []),
        ("s", "tf32", H200, ["input precision"]),
        ("h", "tf32x3", MI300, []),
    ],
)
def test_single_precision_by_parts_needs_nvidias_tensor_cores(data_type, precision, target, expected):
    values = {"LoadPath": "Pointer", "MacroTile": (64, 64), "DepthU": 32, "NumStages": 2, "InputPrecision": precision}
    assert reasons(kind(data_type), target, **values) == expected


def test_float8_needs_compute_capability_8_9_and_the_copy_engine_9_0():
    for architecture, float8, copies in (("sm_88", False, False), ("sm_89", True, False), ("sm_90", True, True)):
        target = replace(H200, architecture=architecture)
        by_items = {"LoadPath": "Pointer", "DepthU": 32, "MacroTile": (64, 64), "NumStages": 2}
        assert reasons(kind("f8"), target, **by_items) == ([] if float8 else ["architecture"])
        assert reasons(kind(), target) == ([] if copies else ["architecture"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"StorePath": "TMA"}, ["warp specialisation"]),
        ({"EpilogueSubtile": 2}, ["warp specialisation"]),
        ({"LoadPath": "Pointer"}, ["warp specialisation"]),
        ({"NumWarps": 8}, ["warp specialisation"]),
        ({"Schedule": "Persistent"}, []),
        ({"Schedule": "Persistent", "FlattenTiles": True}, ["warp specialisation"]),
        ({"Schedule": "SplitK", "GlobalSplitU": 2}, ["warp specialisation"]),
    ],
)
def test_warps_are_specialised_only_where_triton_can_cut_the_tile(values, expected):
    target = replace(H200, architecture="sm_100")
    assert reasons(target=target, **{"WarpSpecialize": True, "NumWarps": 4, "NumStages": 2, **values}) == expected


# --- for a problem ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("odd", ["M", "N", "K"])
def test_wide_loads_need_a_multiple_along_what_is_contiguous(transposes, odd):
    """A lies along M, or transposed along K; B along K, or transposed along N. C and D lie along M."""
    a, b = transposes
    problem_type = kind(transpose_a=a, transpose_b=b)
    sizes = tuple(36 if name == odd else 64 for name in "MNK")
    found = refused(
        (*sizes[:2], 2, sizes[2]), (64, 64, 64, 64), problem_type, LoadPath="Pointer", GlobalReadVectorWidth=8
    )
    along = {"K" if a else "M", "N" if b else "K"}
    assert found == ({"vector width"} if odd in along else set())


@pytest.mark.parametrize(
    ("name", "data_type", "multiple"), [("A", "h", 8), ("B", "h", 8), ("A", "s", 4), ("B", "i8", 16)]
)
@pytest.mark.parametrize("batch", [1, 2])
def test_the_copy_engine_reads_columns_16_bytes_apart(name, data_type, multiple, batch):
    """Or any multiple of these."""
    for distance, expected in ((80, set()), (80 + multiple, set()), (80 + multiple // 2, {"TMA alignment"})):
        leading = (64, 64, distance if name == "A" else 80, distance if name == "B" else 80)
        assert refused((64, 64, batch, 64), leading, kind(data_type), DepthU=32, MacroTile=(64, 64)) == expected


@pytest.mark.parametrize(("data_type", "multiple"), [("h", 8), ("s", 4)])
def test_the_copy_engine_writes_whole_columns_of_16_bytes(data_type, multiple):
    values = {"StorePath": "TMA", "LoadPath": "Pointer", "DepthU": 32, "MacroTile": (64, 64), "NumStages": 2}
    for m, distance, expected in (
        (5 * multiple, 64, set()),
        (6 * multiple, 64 + multiple, set()),
        (5 * multiple + 1, 64, {"TMA store"}),
        (5 * multiple, 65, {"TMA alignment"}),
    ):
        assert refused((m, 48, 2, 64), (distance, 64, 64, 64), kind(data_type), **values) == expected


@pytest.mark.parametrize(("tiles", "fits"), [(2**31 - 1, True), (2**31, False)])
def test_a_launch_has_at_most_2_to_the_31_less_one_work_groups(tiles, fits):
    """Sizes are limited too, but that is another reason."""
    found = refused((16, 16 * tiles, 1, 16), MacroTile=(16, 16), DepthU=16)
    assert ("grid" not in found) is fits
    assert "index range" in found


@pytest.mark.parametrize(("batch", "expected"), [(65_535, set()), (65_536, {"grid"})])
def test_a_batch_has_at_most_65535_matrices(batch, expected):
    values = {"MacroTile": (16, 16), "DepthU": 16}
    assert refused((8, 8, batch, 64), Schedule="SplitK", GlobalSplitU=2, **values) == expected


# --- of a compiled program --------------------------------------------------------------------------------------------


def compiled(target=H200, facts=(), **values):
    chosen = configuration(DENSE, kind(), **values)
    return [rejection.reason for rejection in DENSE.rejections_compiled(chosen, facts, target)]


@pytest.mark.parametrize(
    ("most", "more", "reason"),
    [
        ({"registers": 256}, {"registers": 257}, "registers"),
        ({"spill_bytes": 1024}, {"spill_bytes": 1025}, "spills"),
        ({"local_bytes": 232_448}, {"local_bytes": 232_449}, "local memory"),
        (
            {"registers": 512, "max_work_group_size": 128},
            {"registers": 513, "max_work_group_size": 128},
            "registers",
        ),
    ],
)
def test_a_compiled_program_may_take_what_there_is(most, more, reason):
    """8 warps are 256 work-items, unless the program says how many it has; they share 65,536 registers."""
    for facts, expected in ((most, []), (more, [reason])):
        assert compiled(facts=[CompiledFacts("data_parallel", **facts)], NumWarps=8) == expected


def test_a_program_that_tells_no_shared_memory_takes_none():
    assert compiled(replace(H200, local_memory_bytes=0), [CompiledFacts("data_parallel")]) == []


@pytest.mark.parametrize(
    ("facts", "target", "each"),
    [
        ({"registers": 16, "max_work_group_size": 32}, replace(H200, local_memory_bytes=15 * 1024), 16),
        ({"registers": 16, "max_work_group_size": 32}, replace(H200, local_memory_bytes=15 * 1024 - 1), 15),
        ({"registers": 16}, H200, 8),
        ({"registers": 128}, H200, 2),
        ({}, H200, 1),
        ({}, MI300, 1),
    ],
)
def test_work_groups_that_wait_for_one_another_are_no_more_than_run_at_once(facts, target, each):
    """With 8 warps, on 132 multiprocessors, by what is known of the program."""
    for grid, expected in ((132 * each, []), (132 * each + 1, ["co-residency"])):
        values = {"Schedule": "StreamK", "StreamKGrid": grid, "NumWarps": 8}
        assert compiled(target, [CompiledFacts("stream", **facts)], **values) == expected
