"""Each parameter acts, each illegal combination says why, and a configuration finds its family. No device needed."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from rejection_reasons import reasons_of
from tunesmith.kernels import KERNELS, families_of, family_for, tuning_space
from tunesmith.kernels.gemm import opencl
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import CompiledFacts, Configuration, Launch, Problem, Solution, Target

TILED, REGISTER, BLOCKED = KERNELS["TiledGemm"], KERNELS["RegisterGemm"], KERNELS["BlockedGemm"]
NT = gemm_type("s", batched=True)
GPU = Target(
    api="OpenCL",
    selector="OpenCL:0:0",
    name="a GPU",
    kind="GPU",
    architecture="sm_90",
    driver="1",
    compute_units=132,
    max_work_group_size=1024,
    local_memory_bytes=48 * 1024,
    global_memory_bytes=80 * 2**30,
    max_allocation_bytes=20 * 2**30,
    last_level_cache_bytes=60 * 2**20,
    sub_group_size=32,
    double_precision=True,
)
CPU = replace(GPU, kind="CPU", local_memory_bytes=512 * 1024)
WITHOUT_DOUBLES = replace(GPU, double_precision=False)
ONE_ALLOCATION = replace(GPU, global_memory_bytes=30 * 2**30, max_allocation_bytes=2**60)


def config(kernel, **values):
    return kernel.space(NT).defaults | values


def problem(*sizes, type_=NT, leading=()):
    return Problem(type_, sizes, leading)


CHANGES = {
    "TiledGemm": {
        "WorkGroup": (8, 8, 1),
        "ThreadTile": (2, 8),
        "VectorWidth": 2,
        "LoopUnroll": 16,
        "DepthU": 16,
        "NumLoadsCoalescedA": 2,
        "NumLoadsCoalescedB": 2,
        "PrefetchGlobalRead": True,
        "EdgeType": "ShiftPtr",
        "GlobalSplitU": 2,
        "StreamKGrid": 132,
        "WorkGroupMapping": 8,
        "LdsPad": 1,
    },
    "RegisterGemm": {
        "WorkGroup": (2, 1, 1),
        "ThreadTile": (16, 4),
        "VectorWidth": 8,
        "LoopUnroll": 4,
        "DepthU": 4,
        "EdgeType": "ShiftPtr",
        "GlobalSplitU": 2,
        "StreamKGrid": 132,
        "WorkGroupMapping": 8,
        "PackA": True,
        "PackB": True,
    },
    "BlockedGemm": {
        "Schedule": "FewColumns",
        "MacroTile": (1024, 132),
        "ThreadTile": (32, 6),
        "VectorWidth": 8,
        "LoopUnroll": 2,
        "DepthU": 256,
    },
}
WITH_FEW_COLUMNS = {"MacroTile": (1024, 4), "ThreadTile": (16, 4)}
"""What a BlockedGemm needs beside the Schedule."""
CHOOSES_THE_FAMILY = {"KernelLanguage", "LocalMemory"}
AT_LAUNCH = {"StreamKFullTiles"}
"""Changes no program (`test_stream_k_kernels`)."""


@pytest.mark.parametrize(
    ("kernel", "name", "value"), [(k, name, value) for k, values in CHANGES.items() for name, value in values.items()]
)
def test_a_parameter_changes_the_program(kernel, name, value):
    """Legal before and after; then the source differs, and so does the identity."""
    family = KERNELS[kernel]
    more = WITH_FEW_COLUMNS if name == "Schedule" else {}
    before, after = config(family), config(family, **{name: value}, **more)
    for configuration in (before, after):
        assert not list(family.rejections(configuration, NT, CPU if family is BLOCKED else GPU))
    assert family.modules(before, NT) != family.modules(after, NT)
    identities = {family.identity(Solution(NT, kernel, configuration)) for configuration in (before, after)}
    assert len(identities) == 2


@pytest.mark.parametrize("family", [TILED, REGISTER, BLOCKED], ids=lambda family: family.name)
def test_every_parameter_is_tried_above_and_documented(family):
    names = {parameter.name for parameter in family.space(NT)} - CHOOSES_THE_FAMILY
    assert names - AT_LAUNCH == CHANGES[family.name].keys()
    for parameter in family.space(NT):
        assert len(parameter.doc) > 20
        assert parameter.default in parameter.values


def test_depth_follows_from_loop_unroll_and_the_other_way_round():
    unrolled = config(TILED, LoopUnroll=16)
    assert TILED.derived(unrolled)["DepthU"] == 16
    assert TILED.modules(unrolled, NT) == TILED.modules(config(TILED, DepthU=16), NT)
    assert TILED.derived(config(TILED))["DepthU"] == 8
    split = config(TILED, WorkGroup=(8, 8, 2), LoopUnroll=16)
    assert TILED.derived(split)["DepthU"] == 32


def test_derived_values_are_those_that_a_join_names():
    derived = TILED.derived(config(TILED, WorkGroup=(8, 32, 1), ThreadTile=(2, 8)))
    assert derived["MacroTile"] == (16, 256)
    assert (derived["MacroTile0"], derived["MacroTile1"]) == (16, 256)
    assert derived["NumThreads"] == derived["WorkGroupSize"] == 256


def test_the_wikis_narrow_tiles_need_a_deeper_unroll():
    """16 x 8 elements are fewer than 256 work-items; 16 x 16 are one for each."""
    for groups, tile in (((8, 32, 1), (2, 8)), ((32, 8, 1), (8, 2))):
        narrow = config(TILED, WorkGroup=groups, ThreadTile=tile)
        assert [rejection.reason for rejection in TILED.rejections(narrow, NT, GPU)] == ["tile loads"]
        assert not list(TILED.rejections(narrow | {"LoopUnroll": 16}, NT, GPU))


def test_every_other_tile_of_the_wiki_is_legal_at_the_default_unroll():
    legal = [
        (groups, tile)
        for groups in ((8, 32, 1), (16, 16, 1), (32, 8, 1))
        for tile in ((2, 8), (4, 4), (8, 2))
        if not list(TILED.rejections(config(TILED, WorkGroup=groups, ThreadTile=tile), NT, GPU))
    ]
    assert len(legal) == 7


D = gemm_type("d", batched=True)
ILLEGAL = [
    (TILED, NT, {"LocalMemory": False}, "form"),
    (REGISTER, NT, {"LocalMemory": True}, "form"),
    (TILED, NT, {"WorkGroup": (32, 64, 1)}, "work-group size"),
    (TILED, NT, {"ThreadTile": (16, 16), "LoopUnroll": 32}, "local memory"),
    (TILED, NT, {"LoopUnroll": 8, "DepthU": 32}, "depth"),
    (TILED, NT, {"WorkGroup": (8, 8, 2), "DepthU": 7}, "depth"),
    (TILED, NT, {"VectorWidth": 8}, "vector width and thread tile"),
    (REGISTER, NT, {"ThreadTile": (24, 8)}, "vector width and thread tile"),
    (TILED, NT, {"LoopUnroll": 1}, "tile loads"),
    (TILED, NT, {"NumLoadsCoalescedA": 8}, "coalesced loads"),
    (TILED, NT, {"NumLoadsCoalescedB": 3}, "coalesced loads"),
    (TILED, NT, {"ThreadTile": (16, 16), "VectorWidth": 4}, "registers"),
    (TILED, NT, {"ThreadTile": (16, 16), "LoopUnroll": 32}, "unrolled code"),
    (REGISTER, NT, {"WorkGroup": (1, 2, 2)}, "local split"),
    (TILED, NT, {"GlobalSplitU": 70_000}, "global split"),
    (TILED, NT, {"GlobalSplitU": 2, "StreamKGrid": 132}, "stream-K"),
    (BLOCKED, NT, {}, "device kind"),
    (BLOCKED, NT, {"Schedule": "Persistent"}, "schedule"),
    (BLOCKED, NT, {"ThreadTile": (24, 6), "MacroTile": (1032, 264)}, "vector width and thread tile"),
    (BLOCKED, NT, {"MacroTile": (1024, 256)}, "macro tile"),
    (BLOCKED, NT, {"MacroTile": (1000, 264)}, "macro tile"),
    (BLOCKED, NT, {"DepthU": 512}, "local memory"),
    (BLOCKED, NT, {"Schedule": "FewColumns"}, "macro tile"),
    (BLOCKED, NT, {"Schedule": "FewColumns", **WITH_FEW_COLUMNS, "MacroTile": (1000, 4)}, "macro tile"),
    (BLOCKED, NT, {"Schedule": "FewColumns", **WITH_FEW_COLUMNS, "LoopUnroll": 8}, "depth"),
    (
        BLOCKED,
        gemm_type(transpose_a=True, batched=True),
        {"Schedule": "FewColumns", **WITH_FEW_COLUMNS},
        "layout",
    ),
]


@pytest.mark.parametrize(("family", "type_", "values", "reason"), ILLEGAL)
def test_an_illegal_configuration_says_why(family, type_, values, reason):
    target = CPU if family is BLOCKED and reason != "device kind" else GPU
    rejections = list(family.rejections(config(family, **values), type_, target))
    assert reason in [rejection.reason for rejection in rejections]
    assert all(rejection.detail for rejection in rejections)


def test_double_precision_needs_a_device_that_has_it():
    for family in (TILED, REGISTER, BLOCKED):
        target = (
            replace(WITHOUT_DOUBLES, kind="CPU", local_memory_bytes=2**20) if family is BLOCKED else WITHOUT_DOUBLES
        )
        assert [r.reason for r in family.rejections(config(family), D, target)] == ["double precision"]
    for family, target in ((TILED, GPU), (REGISTER, GPU), (BLOCKED, replace(CPU, local_memory_bytes=2**20))):
        assert not list(family.rejections(config(family), D, target))


@pytest.mark.parametrize(
    ("family", "values", "sizes", "leading", "reason"),
    [
        (TILED, {"EdgeType": "ShiftPtr", "VectorWidth": 2}, (1, 64, 1, 64), (), "shifted edge"),
        (REGISTER, {"EdgeType": "ShiftPtr"}, (31, 64, 1, 64), (), "shifted edge"),
        (TILED, {}, (200_000, 200_000, 1, 16), (), "device memory"),
        (TILED, {}, (100_000, 64, 1, 100_000), (), "maximum allocation"),
        (TILED, {"GlobalSplitU": 8}, (30_000, 30_000, 1, 64), (), "maximum allocation"),
        (REGISTER, {"PackA": True}, (70_001, 8, 1, 70_001), (70_001, 70_001, 70_001, 8), "device memory"),
        (TILED, {}, (1, 1, 1, 2**31 - 4), (), "index range"),
        (BLOCKED, {}, (2**31 - 40, 1, 1, 1), (), "index range"),
        (BLOCKED, {"MacroTile": (16, 6)}, (16, 400_000, 1, 4), (), "grid"),
        (TILED, {}, (4, 4, 65_536, 4), (), "grid"),
        (TILED, {"WorkGroup": (1, 1, 1), "ThreadTile": (1, 1)}, (2**16, 2**16, 1, 1), (), "grid"),
    ],
)
def test_a_problem_that_does_not_fit_says_why(family, values, sizes, leading, reason):
    target = ONE_ALLOCATION if reason == "device memory" else GPU
    rejections = family.rejections_for(config(family, **values), problem(*sizes, leading=leading), target)
    assert reason in [rejection.reason for rejection in rejections]


def test_every_reason_is_provoked_by_a_test_here():
    source = inspect.getsource(inspect.getmodule(config))
    assert [reason for reason in reasons_of(opencl) if f'"{reason}"' not in source] == []


def test_a_global_split_adds_a_launch_and_a_workspace():
    whole, split = (TILED.plan(config(TILED, GlobalSplitU=parts), problem(100, 50, 2, 64), GPU) for parts in (1, 4))
    assert [step.entry for step in whole.steps] == ["gemm"]
    assert whole.workspace_bytes == 0
    assert [step.entry for step in split.steps] == ["gemm", "sum_of_splits"]
    assert split.workspace_bytes >= 4 * 2 * 100 * 50 * 4
    assert split.steps[0].grid[2] == 4 * whole.steps[0].grid[2]


def test_packing_adds_a_launch_for_each_operand():
    plan = REGISTER.plan(config(REGISTER, PackA=True, PackB=True), problem(100, 50, 2, 64), GPU)
    assert [step.entry for step in plan.steps] == ["pack_A", "pack_B", "gemm"]
    assert plan.workspace_bytes % 256 == 0


def test_an_empty_matrix_launches_nothing():
    for family in (TILED, REGISTER, BLOCKED):
        assert not family.plan(config(family), problem(0, 5, 1, 3), GPU).steps
        assert not list(family.rejections_for(config(family), problem(0, 5, 1, 3), GPU))


@pytest.mark.parametrize("family", [TILED, REGISTER], ids=lambda family: family.name)
def test_no_grid_depends_on_anything_but_the_tiles(family):
    """Every tile has a work-group: rounding up, not down, on sizes that divide nothing."""
    step = family.plan(config(family), problem(129, 65, 3, 7), GPU).steps[-1]
    assert isinstance(step, Launch)
    tile0, tile1 = family.derived(config(family))["MacroTile"]
    assert step.grid == (-(-129 // tile0), -(-65 // tile1), 3)


def test_more_tile_columns_than_a_device_counts_along_y_go_along_x():
    step = TILED.plan(config(TILED, WorkGroup=(1, 1, 1), ThreadTile=(1, 1)), problem(3, 70_000, 1, 1), GPU).steps[0]
    assert step.grid == (210_000, 1, 1)


@pytest.mark.parametrize("family", [TILED, REGISTER, BLOCKED], ids=lambda family: family.name)
def test_what_the_compiler_says_can_reject(family):
    """A program whose registers leave no room for a work-group, and one that took too much local memory."""
    narrow = CompiledFacts("gemm", registers=255, max_work_group_size=0 if family is BLOCKED else 1)
    greedy = CompiledFacts("gemm", local_bytes=GPU.local_memory_bytes + 1)
    fine = CompiledFacts("gemm", local_bytes=100, max_work_group_size=1024)
    found = [[r.reason for r in family.rejections_compiled(config(family), [f], GPU)] for f in (narrow, greedy, fine)]
    assert found == [["work-group size"], ["local memory"], []]


def test_a_guess_orders_a_starved_configuration_behind_a_sound_one():
    big = problem(1024, 1024, 1, 1024)
    tiny = config(TILED, ThreadTile=(1, 1))
    assert TILED.guess(config(TILED), big, GPU) < TILED.guess(tiny, big, GPU)


def test_a_familys_defaults_mean_that_family():
    for family in families_of("GEMM"):
        assert family_for("GEMM", family.space(NT).defaults) is family


def test_local_memory_forks_between_the_forms():
    union = tuning_space(NT).defaults
    assert family_for("GEMM", union) is TILED
    assert family_for("GEMM", union | {"LocalMemory": False}) is REGISTER
    assert family_for("GEMM", Configuration()) is TILED


def test_every_family_understands_the_defaults_of_the_shared_space():
    """A run starts from them, whichever language it then forks to."""
    union = tuning_space(NT, GPU).defaults
    for family in families_of("GEMM"):
        if family.name == "VendorBlas":  # it has no parameter but the language, and nothing that follows from it
            continue
        start = union | {"KernelLanguage": family.language, **family.form}
        derived = family.derived(start)
        depth = derived["DepthU"] if "DepthU" in derived else derived["DepthBytes"]
        assert depth > 0
        list(family.rejections(start, NT, GPU))
        family.guess(start, problem(64, 64, 1, 64), GPU)


def test_an_unknown_form_names_those_that_exist():
    with pytest.raises(LookupError, match="TiledGemm"):
        family_for("GEMM", Configuration({"KernelLanguage": "Fortran"}))


def test_the_tuning_space_holds_every_parameter_of_every_family():
    union = tuning_space(NT, GPU, hidden=True)
    for family in families_of("GEMM"):
        for parameter in family.space(NT, GPU):
            assert set(parameter.values) <= set(union[parameter.name].values)


def test_nobody_is_offered_the_family_that_only_tests_use():
    shown = tuning_space(NT, GPU)
    assert set(shown["KernelLanguage"].values) == {"OpenCL", "CUDA", "Triton", "BLAS"}
    assert not any(parameter.name.startswith("Fake") for parameter in shown)
    with pytest.raises(LookupError) as error:
        family_for("GEMM", Configuration({"KernelLanguage": "Fortran"}))
    assert "Fake" not in str(error.value)


@pytest.mark.parametrize("family", [TILED, REGISTER], ids=lambda family: family.name)
@pytest.mark.parametrize("type_", [NT, D, gemm_type("s", transpose_a=True, transpose_b=False)], ids=lambda t: t.name)
def test_default_configurations_are_legal_on_a_gpu(family, type_):
    assert not list(family.rejections(family.space(type_).defaults, type_, GPU))


@pytest.mark.parametrize("family", [TILED, REGISTER], ids=["tiled", "register"])
def test_a_work_group_may_be_as_large_as_the_device_allows_and_no_larger(family):
    items = config(family)["WorkGroup"][0] * config(family)["WorkGroup"][1]
    assert not list(family.rejections(config(family), NT, replace(GPU, max_work_group_size=items)))
    (rejection,) = family.rejections(config(family), NT, replace(GPU, max_work_group_size=items - 1))
    assert rejection.reason == "work-group size"
