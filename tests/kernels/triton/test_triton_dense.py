"""The Triton families' limits and launches: named reasons, parameters that act, plans. Neither Triton nor a GPU."""

from __future__ import annotations

import dataclasses

import pytest

from cuda_runner import H200, configuration
from tunesmith.kernels import KERNELS, family_for
from tunesmith.kernels.gemm.stream_k import StreamKSchedule
from tunesmith.kernels.gemm.triton import rules
from tunesmith.problems.gemm import Gemm, GemmOperation, gemm_type
from tunesmith.records import (
    CompiledFacts,
    Configuration,
    Launch,
    Problem,
    Solution,
    TensorMapArgument,
    UserError,
    Zero,
)

DENSE, GEMV = KERNELS["TritonGemm"], KERNELS["TritonGemv"]
MI300 = dataclasses.replace(H200, api="HIP", architecture="gfx942", sub_group_size=64, local_memory_bytes=65536)


def kind(data_type="h", **more):
    return gemm_type(data_type, **{"transpose_a": True, "transpose_b": False, "batched": True, **more})


def config(problem_type=None, family=DENSE, **values):
    return configuration(family, problem_type or kind(), **values)


def problem(*sizes, problem_type=None, leading=()):
    return Problem(problem_type or kind(), sizes, leading, Configuration({"alpha": 1.5, "beta": 0.5}))


def reasons(rejections):
    return {rejection.reason for rejection in rejections}


STREAM = {"Schedule": "StreamK", "StreamKGrid": 132}
SPECIAL = {"WarpSpecialize": True, "NumWarps": 4}
NEWER = {"architecture": "sm_100"}
BLACKWELL = dataclasses.replace(H200, **NEWER)

# --- which family, and what may vary ---------------------------------------------------------------------------------


def test_a_configuration_means_these_families_by_naming_a_schedule_or_a_vector():
    triton = {"KernelLanguage": "Triton"}
    assert family_for("GEMM", Configuration(triton)) is KERNELS["TritonTmaGemm"]
    assert family_for("GEMM", Configuration(triton | {"Schedule": "StreamK"})) is DENSE
    assert family_for("GEMM", Configuration(triton | {"GemvAlong": "N"})) is GEMV


CHANGES = {
    "Schedule": "Persistent",
    "MacroTile": (128, 64),
    "DepthU": 32,
    "NumWarps": 4,
    "NumStages": 2,
    "WorkGroupMapping": 8,
    "EpilogueSubtile": 2,
    "SwapOperands": False,
    "LoadPath": "Pointer",
    "StorePath": "TMA",
    "StoreVectorWidth": 8,
}
CHANGES_WITH = {
    "GlobalReadVectorWidth": (8, {"LoadPath": "Pointer"}),
    "WarpSpecialize": (True, {"NumWarps": 4}),
    "FlattenTiles": (True, {"Schedule": "Persistent"}),
    "InputPrecision": ("ieee", {}),
    "GlobalSplitU": (4, {"Schedule": "SplitK", "GlobalSplitU": 2}),
    "StreamKGrid": (100, STREAM),
    "StreamKFullTiles": (1, STREAM),
}
"""What else must be said for a parameter to act."""


@pytest.mark.parametrize(
    ("name", "value", "start"),
    [(n, v, {}) for n, v in CHANGES.items()] + [(n, v, start) for n, (v, start) in CHANGES_WITH.items()],
)
def test_every_parameter_acts(name, value, start):
    """Legal before and after; then another program, or for what acts at launch another plan of the same program."""
    problem_type = kind("s") if name == "InputPrecision" else kind()
    start = {"DepthU": 32, **start} if name == "InputPrecision" else start
    before, after = config(problem_type, **start), config(problem_type, **{**start, name: value})
    for chosen in (before, after):
        assert not list(DENSE.rejections(chosen, problem_type, BLACKWELL if name == "WarpSpecialize" else H200))
    same = DENSE.modules(before, problem_type) == DENSE.modules(after, problem_type)
    assert same == (name in ("GlobalSplitU", "StreamKGrid", "StreamKFullTiles"))
    asked = problem(1000, 1000, 3, 1024, problem_type=problem_type)
    assert not same or DENSE.plan(before, asked, H200) != DENSE.plan(after, asked, H200)
    assert len({DENSE.identity(Solution(problem_type, DENSE.name, chosen)) for chosen in (before, after)}) == 2


def test_every_parameter_is_tried_above_and_documented():
    assert {parameter.name for parameter in DENSE.space(kind())} == {*CHANGES, *CHANGES_WITH, "KernelLanguage"}
    for family in (DENSE, GEMV):
        for parameter in family.space(kind()):
            assert len(parameter.doc) > 20


def test_what_a_type_has_no_use_for_makes_no_second_program():
    """The precision of float32 products, and the width of loads that the copy engine makes."""
    for value in ({"InputPrecision": "ieee"}, {"GlobalReadVectorWidth": 8}):
        assert DENSE.modules(config(), kind()) == DENSE.modules(config(**value), kind())


@pytest.mark.parametrize("data_type", ["s", "h", "b", "f8", "b8", "i8"])
def test_defaults_are_legal_on_a_gpu(data_type):
    problem_type = kind(data_type)
    assert not list(DENSE.rejections(config(problem_type), problem_type, H200))
    assert not list(GEMV.rejections(config(problem_type, GEMV), problem_type, H200))


# --- why not ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "values", "target"),
    [
        ("device API", {}, {"api": "OpenCL"}),
        ("architecture", {}, {"architecture": "sm_80"}),
        ("architecture", {"LoadPath": "Pointer", "StorePath": "TMA"}, {"architecture": "sm_80"}),
        ("power of two", {"MacroTile": (96, 128)}, {}),
        ("power of two", {"NumWarps": 3}, {}),
        ("tile shape", {"MacroTile": (8, 128)}, {}),
        ("tile shape", {"MacroTile": (512, 16)}, {}),
        ("tile shape", {"DepthU": 8}, {}),
        ("warps and stages", {"NumWarps": 16}, {}),
        ("registers", {"MacroTile": (256, 256), "DepthU": 16}, {}),
        ("epilogue parts", {"MacroTile": (16, 128), "EpilogueSubtile": 2}, {}),
        ("vector width", {"StoreVectorWidth": 16}, {}),
        ("local memory", {"NumStages": 8}, {}),
        ("local memory", {"LoadPath": "Pointer", "GlobalReadVectorWidth": 8, "NumStages": 6, "DepthU": 128}, {}),
        ("global split", {"GlobalSplitU": 2}, {}),
        ("global split", {"Schedule": "SplitK"}, {}),
        ("global split", {"Schedule": "SplitK", "GlobalSplitU": 2, "EpilogueSubtile": 2}, {}),
        ("global split", {"Schedule": "FillK", "GlobalSplitU": 2}, {}),
        ("stream-K", {"StreamKGrid": 64}, {}),
        ("stream-K", {"Schedule": "StreamK", "StreamKFullTiles": 1}, {}),
        ("flattened loop", {"FlattenTiles": True}, {}),
        ("warp specialisation", SPECIAL, {}),
        ("warp specialisation", {"WarpSpecialize": True, "NumWarps": 8}, NEWER),
        ("warp specialisation", {**SPECIAL, "LoadPath": "Pointer"}, NEWER),
        ("warp specialisation", {**SPECIAL, **STREAM}, NEWER),
        ("warp specialisation", {**SPECIAL, "Schedule": "Persistent", "FlattenTiles": True}, NEWER),
        ("input precision", {"InputPrecision": "tf32"}, {}),
    ],
)
def test_an_illegal_configuration_has_a_named_reason(reason, values, target):
    assert reason in reasons(DENSE.rejections(config(**values), kind(), dataclasses.replace(H200, **target)))


@pytest.mark.parametrize("family", [DENSE, GEMV], ids=lambda family: family.name)
def test_types_that_are_not_computed_have_a_named_reason(family):
    def refused(problem_type, target=H200, **values):
        return reasons(family.rejections(config(problem_type, family, **values), problem_type, target))

    assert "data type" in refused(kind("d"))
    assert "batch layout" in refused(kind("h", interleaved=True))
    older = dataclasses.replace(H200, architecture="sm_80")
    assert "architecture" in refused(kind("f8"), older)
    assert "architecture" in refused(kind("f8"), MI300)


def test_specialised_warps_share_a_tile_that_is_too_large_for_four():
    wide = {"MacroTile": (128, 256), "NumWarps": 4}
    assert reasons(DENSE.rejections(config(**wide), kind(), H200)) == {"registers"}
    assert not list(DENSE.rejections(config(**wide, WarpSpecialize=True), kind(), BLACKWELL))


def test_eight_bit_operands_need_32_steps_of_k_and_tf32_a_type_that_permits_it():
    shallow = {"DepthU": 16}
    assert "tile shape" in reasons(DENSE.rejections(config(kind("i8"), **shallow), kind("i8"), H200))
    assert "tile shape" not in reasons(DENSE.rejections(config(**shallow), kind(), H200))
    quick = {"InputPrecision": "tf32", "DepthU": 32}
    assert reasons(DENSE.rejections(config(kind("s"), **quick), kind("s"), H200)) == {"input precision"}
    assert not list(DENSE.rejections(config(**quick), kind("s", tf32=True), H200))


@pytest.mark.parametrize(
    ("reason", "values", "sizes", "more"),
    [
        ("TMA alignment", {}, (40, 20, 2, 44), {}),
        ("TMA alignment", {"LoadPath": "Pointer", "StorePath": "TMA"}, (44, 20, 1, 64), {}),
        ("TMA store", {"StorePath": "TMA"}, (44, 20, 1, 64), {"leading": (48, 48, 64, 64)}),
        ("TMA box", {}, (40, 20, 1, 0), {"leading": (40, 40, 8, 8)}),
        ("vector width", {"LoadPath": "Pointer", "GlobalReadVectorWidth": 8}, (40, 20, 1, 44), {}),
        ("vector width", {"StoreVectorWidth": 8}, (44, 20, 1, 64), {}),
        ("global split", {"Schedule": "SplitK", "GlobalSplitU": 3}, (64, 64, 1, 128), {}),
        ("grid", {"Schedule": "SplitK", "GlobalSplitU": 2}, (8, 8, 70_000, 128), {}),
        ("grid", {"MacroTile": (16, 16)}, (16, 2**31 - 4096, 17, 8), {}),
        ("index range", {}, (64, 2**31 - 8, 1, 8), {}),
        ("maximum allocation", {"Schedule": "SplitK", "GlobalSplitU": 32}, (2**15, 2**15, 2, 4096), {}),
    ],
)
def test_a_problem_that_cannot_be_run_has_a_named_reason(reason, values, sizes, more):
    assert reason in reasons(DENSE.rejections_for(config(**values), problem(*sizes, **more), H200))


def test_loads_by_work_items_take_any_size_and_stride():
    asked = problem(37, 20, 3, 41, leading=(39, 41, 43, 47))
    assert not list(DENSE.rejections_for(config(LoadPath="Pointer"), asked, H200))
    assert not list(DENSE.rejections_for(config(LoadPath="Pointer", **STREAM), asked, H200))


@pytest.mark.parametrize(
    ("reason", "values", "sizes"),
    [
        ("no vector", {}, (40, 2, 1, 44)),
        ("no vector", {"GemvAlong": "N"}, (40, 1, 1, 44)),
        ("vector width", {"GlobalReadVectorWidth": 8}, (40, 1, 1, 44)),
        ("global split", {"GlobalSplitU": 4}, (40, 1, 1, 512)),
    ],
)
def test_a_vector_that_cannot_be_multiplied_has_a_named_reason(reason, values, sizes):
    assert reasons(GEMV.rejections_for(config(family=GEMV, **values), problem(*sizes), H200)) == {reason}
    huge = config(family=GEMV, GemvTile=(256, 512))
    assert reasons(GEMV.rejections(huge, kind(), H200)) == {"registers"}


def test_a_program_that_lives_on_its_stack_or_needs_too_much_is_rejected():
    def found(**facts):
        return reasons(DENSE.rejections_compiled(config(), [CompiledFacts("data_parallel", **facts)], H200))

    assert found(registers=255, spill_bytes=100, local_bytes=1000) == set()
    assert found(registers=32, spill_bytes=4640) == {"spills"}
    assert found(local_bytes=232449) == {"local memory"}
    assert found(registers=255, max_work_group_size=384) == {"registers"}


# --- launches --------------------------------------------------------------------------------------------------------

FACTS = {"registers": 128, "local_bytes": 70_000, "max_work_group_size": 256}


def stream_facts(**changed):
    return [CompiledFacts("stream", **{**FACTS, **changed})]


@pytest.mark.parametrize(
    ("changed", "each"),
    [({}, 2), ({"registers": 129}, 1), ({"local_bytes": 115_000}, 2), ({"local_bytes": 116_000}, 1),
     ({"registers": 16, "local_bytes": 0}, 8), ({"registers": 16, "local_bytes": 0, "max_work_group_size": 32}, 16)],
)  # fmt: skip
def test_a_grid_that_cannot_run_at_once_is_refused(changed, each):
    """By registers, shared memory and work-items of a multiprocessor (CUDA's occupancy calculator says the same)."""
    most, more = (config(**{**STREAM, "StreamKGrid": 132 * each + extra}) for extra in (0, 1))
    facts, asked = stream_facts(**changed), problem(4096, 4096, 1, 4096)
    assert not list(DENSE.rejections_compiled(most, facts, H200))
    assert reasons(DENSE.rejections_compiled(more, facts, H200)) == {"co-residency"}
    assert DENSE.plan(most, asked, H200, facts).steps[-1].grid == (132 * each, 1, 1)
    with pytest.raises(UserError, match="StreamKGrid"):
        DENSE.plan(more, asked, H200, facts)


def test_persistent_work_groups_are_as_many_as_run_at_once():
    def grid(facts=(), **sizes):
        (launch,) = DENSE.plan(config(Schedule="Persistent"), problem(*sizes["of"]), H200, facts).steps
        return launch.grid

    facts = [CompiledFacts("persistent", **FACTS)]
    assert grid(of=(8192, 8192, 1, 64)) == (132, 1, 1)
    assert grid(facts, of=(8192, 8192, 1, 64)) == (264, 1, 1)
    assert grid(facts, of=(256, 300, 2, 64)) == (12, 1, 1)


def test_a_launch_has_the_work_items_that_the_program_was_made_for():
    """Warp specialisation adds some."""
    asked, facts = problem(256, 256, 1, 64), [CompiledFacts("data_parallel", max_work_group_size=384)]
    assert DENSE.plan(config(**SPECIAL), asked, H200, facts).steps[0].work_group == (384, 1, 1)
    assert DENSE.plan(config(**SPECIAL), asked, H200).steps[0].work_group == (128, 1, 1)


def test_split_k_adds_in_a_second_launch():
    plan = DENSE.plan(config(Schedule="SplitK", GlobalSplitU=4), problem(300, 200, 2, 1000), H200)
    assert [step.entry for step in plan.steps] == ["split", "add_parts"]
    assert plan.steps[0].grid == (3 * 2 * 2 * 4, 1, 1)
    assert plan.workspace_bytes == 4 * 2 * 200 * 300 * 4


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [((64, 64, 1, 100_000), 132), ((300, 200, 2, 1000), 11), ((100, 100, 1, 256), 4), ((1000, 1000, 1, 4096), 2)],
)
def test_fill_k_cuts_k_until_the_device_is_full(sizes, parts):
    asked, cut = problem(*sizes), config(Schedule="SplitK", GlobalSplitU=parts)
    assert not list(DENSE.rejections_for(config(Schedule="FillK"), asked, H200))
    filling, splitting = (DENSE.plan(chosen, asked, H200) for chosen in (config(Schedule="FillK"), cut))
    assert (filling.steps[0], filling.workspace_bytes) == (splitting.steps[0], splitting.workspace_bytes)
    assert DENSE.guess(config(Schedule="FillK"), asked, H200) == DENSE.guess(cut, asked, H200)


@pytest.mark.parametrize("sizes", [(1100, 1100, 1, 4096), (64, 64, 1, 64)])
def test_where_one_part_is_enough_fill_k_is_refused(sizes):
    assert "global split" in reasons(DENSE.rejections_for(config(Schedule="FillK"), problem(*sizes), H200))


@pytest.mark.parametrize(("grid", "full_tiles"), [(132, 0), (100, 1), (7, 0), (300, 2)])
def test_stream_k_zeroes_its_flags_and_has_a_place_for_each_work_group(grid, full_tiles):
    chosen = config(**{**STREAM, "StreamKGrid": grid, "StreamKFullTiles": full_tiles})
    plan = DENSE.plan(chosen, problem(1300, 1300, 1, 4096), H200)
    flags, launch = plan.steps
    assert isinstance(flags, Zero)
    assert isinstance(launch, Launch)
    assert flags.size == grid * 4
    assert flags.offset == grid * 128 * 128 * 4
    assert plan.workspace_bytes == flags.offset + flags.size
    schedule = StreamKSchedule.two_tile(121, 64, grid, full_tiles)
    values = {argument.value for argument in launch.arguments if getattr(argument, "dtype", "") == "int64"}
    assert {schedule.per_group, schedule.extra} <= values


def test_where_no_tile_is_shared_nothing_is_zeroed():
    for values, groups in (({"StreamKGrid": 0}, 121), ({"StreamKGrid": 11}, 11), ({"StreamKFullTiles": -1}, 132)):
        (launch,) = DENSE.plan(config(**{**STREAM, **values}), problem(1408, 1408, 1, 4096), H200).steps
        assert launch.grid == (groups, 1, 1)


def test_a_work_group_leaves_at_most_one_tile_unfinished_to_one_of_a_higher_number():
    """What the kernel relies on: one place for each, and nobody waits for a higher number than its own."""
    for tiles, iterations, grid, full in ((121, 64, 132, 0), (7, 3, 5, 1), (1, 100, 37, 0), (9, 5, 4, 0)):
        schedule = StreamKSchedule.two_tile(tiles, iterations, grid, full)
        for group in range(grid):
            left = [
                segment
                for segment in schedule.segments(group)
                if segment.tile >= schedule.alone and segment.end < iterations
            ]
            assert len(left) <= 1
            assert all(schedule.groups_on(segment.tile)[-1] > group for segment in left)


def test_an_empty_matrix_launches_nothing():
    for sizes in ((0, 5, 1, 3), (5, 0, 1, 3), (5, 5, 0, 3)):
        assert not DENSE.plan(config(LoadPath="Pointer", **STREAM), problem(*sizes), H200).steps
        assert not GEMV.plan(config(family=GEMV), problem(*sizes), H200).steps


@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
def test_descriptors_are_of_the_matrices_as_they_lie_in_memory(transposes):
    problem_type = gemm_type("f8", transpose_a=transposes[0], transpose_b=transposes[1], batched=True)
    asked = problem(96, 80, 3, 64, problem_type=problem_type, leading=(112, 128, 144, 160))
    (launch,) = DENSE.plan(config(problem_type, StorePath="TMA"), asked, H200).steps
    made = {argument.name: argument for argument in launch.arguments if isinstance(argument, TensorMapArgument)}
    for operand in (operand for operand in GemmOperation().operands(asked) if operand.name in made):
        pairs = sorted(zip(operand.shape, operand.strides, strict=True), key=lambda pair: -pair[1])
        assert list(zip(made[operand.name].shape, made[operand.name].strides, strict=True)) == pairs
    assert {name: tensor_map.dtype for name, tensor_map in made.items()} == {
        "A": "uint8",
        "B": "uint8",
        "D": "bfloat16",
    }


def test_a_guess_prefers_what_fills_the_device():
    """Large tiles for large products; for few tiles with a long K, work-groups that share them."""

    def best(asked, *candidates):
        return min(candidates, key=lambda values: DENSE.guess(config(**values), asked, H200))

    large, small = {"MacroTile": (128, 256)}, {"MacroTile": (16, 16)}
    assert best(problem(8192, 8192, 1, 8192), large, small) == large
    split = {"Schedule": "SplitK", "GlobalSplitU": 32}
    assert best(problem(256, 256, 1, 65536), {}, split) == split
    assert best(problem(8192, 8192, 1, 1024), {}, split) == {}
    assert best(problem(256, 256, 1, 65536), {}, STREAM) == STREAM
    vectors = [config(family=GEMV, GlobalSplitU=parts) for parts in (1, 8)]
    few, many = (problem(m, 1, 1, 65536) for m in (64, 65536))
    assert min(vectors, key=lambda vector: GEMV.guess(vector, few, H200)) == vectors[1]
    assert min(vectors, key=lambda vector: GEMV.guess(vector, many, H200)) == vectors[0]


def test_sums_too_short_for_tf32x3_to_be_as_exact_as_float32_have_a_named_reason():
    problem_type = kind("s")
    chosen = {precision: config(problem_type, DepthU=32, InputPrecision=precision) for precision in ("tf32x3", "ieee")}

    def refused(precision, k):
        return "input precision" in reasons(
            DENSE.rejections_for(chosen[precision], problem(64, 64, 1, k, problem_type=problem_type), H200)
        )

    assert [k for k in (0, 1, 7, 8, 1000) if refused("tf32x3", k)] == [1, 7]
    assert not refused("ieee", 1)


@pytest.mark.parametrize(("batch", "stride", "is_even"), [(1, 33, True), (2, 33, False), (2, 32, True), (3, 36, False)])
def test_strides_of_a_batch_count_only_where_there_is_one(batch, stride, is_even):
    gemm = Gemm.of(problem(16, 16, batch, 16))
    found = list(rules.uneven("C", 8, {"C": (16, 16, stride)}, gemm))
    assert (found == []) is is_even
