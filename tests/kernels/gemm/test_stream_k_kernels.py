"""Stream-K in the OpenCL GEMM kernels: right on every remainder, the same bits every time, launched as planned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_gemm_parameters import GPU

from opencl_runner import opencl_device, run, unoptimised, verify
from tunesmith.kernels import KERNELS
from tunesmith.kernels.gemm.stream_k import StreamKSchedule
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem, Solution

TILED, REGISTER = KERNELS["TiledGemm"], KERNELS["RegisterGemm"]
SMALL_TILED = {"WorkGroup": (4, 8, 1), "ThreadTile": (4, 2), "LoopUnroll": 4, "NumLoadsCoalescedA": 2}
SMALL_REGISTER = {"WorkGroup": (2, 2, 1), "ThreadTile": (8, 3), "VectorWidth": 4, "LoopUnroll": 4}
FAMILIES = [pytest.param(TILED, SMALL_TILED, id="tiled"), pytest.param(REGISTER, SMALL_REGISTER, id="register")]
UNOPTIMISED = [pytest.param(unoptimised(family.values[0]), *family.values[1:], id=family.id) for family in FAMILIES]
SHIFTED = {"EdgeType": "ShiftPtr", "VectorWidth": 2}
NT = gemm_type(batched=True)


def configured(family, values, type_=NT, **more):
    return family.space(type_).defaults | values | more


# --- right ----------------------------------------------------------------------------------------------------------


@pytest.mark.opencl
@pytest.mark.parametrize("full_tiles", [0, 1])
@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_every_remainder_is_right(family, values, full_tiles):
    """3 x 5 tiles at 16 x 16, or 3 x 13 at 16 x 6, on 1 to 16 work-groups and on more than there are iterations; 10
    iterations of 4 steps, the last of them short."""
    problem = Problem(NT, (37, 73, 1, 38), (), Configuration({"alpha": -1.5, "beta": 0.5}))
    for grid in (*range(1, 17), 40, 1000):
        verify(family, configured(family, values, StreamKGrid=grid, StreamKFullTiles=full_tiles), problem, seed=grid)


@pytest.mark.opencl
@pytest.mark.parametrize("transposes", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("family", "values"), UNOPTIMISED)
def test_layouts_batches_and_leading_dimensions_are_right(family, values, transposes):
    a, b = transposes
    type_ = gemm_type("d", transpose_a=a, transpose_b=b, batched=True)
    padded = (43, 41, 40 if not a else 25, 33)
    for grid, full_tiles, scalars in ((7, 0, {"alpha": 2.0, "beta": -0.5}), (5, 1, {"alpha": 1.0, "beta": 0.0})):
        config = configured(family, values, type_, StreamKGrid=grid, StreamKFullTiles=full_tiles)
        verify(family, config, Problem(type_, (37, 29, 3, 23), padded, Configuration(scalars)))


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("family", "values"),
    [
        (TILED, SHIFTED | {"WorkGroup": (4, 4, 2), "ThreadTile": (4, 4), "PrefetchGlobalRead": True, "LdsPad": 1}),
        (TILED, {"WorkGroup": (4, 4, 1), "ThreadTile": (4, 4), "WorkGroupMapping": 3}),
        (REGISTER, SHIFTED | {"ThreadTile": (8, 3), "PackB": True, "WorkGroupMapping": 2}),
        (REGISTER, {"ThreadTile": (8, 3), "VectorWidth": 4, "PackA": True, "PackB": True}),
    ],
    ids=["tiled-shift-slices", "tiled-mapping", "register-shift", "register-packed"],
)
def test_it_goes_with_the_other_parameters(family, values):
    config = configured(family, values, StreamKGrid=11)
    assert not list(family.rejections(config, NT, opencl_device().target))
    verify(unoptimised(family), config, Problem(NT, (37, 41, 2, 45), (), Configuration({"alpha": 1.25, "beta": 2.0})))


@pytest.mark.opencl
@pytest.mark.parametrize(("family", "values"), UNOPTIMISED)
def test_a_type_without_beta_has_no_c(family, values):
    type_ = gemm_type(use_beta=False)
    config = configured(family, values, type_, StreamKGrid=5)
    verify(family, config, Problem(type_, (37, 29, 23), (), Configuration({"alpha": -1.5})))


@pytest.mark.opencl
@pytest.mark.parametrize(("family", "values"), UNOPTIMISED)
def test_no_terms_leave_beta_c(family, values):
    problem = Problem(gemm_type(), (9, 70, 0), (9, 9, 9, 70), Configuration({"alpha": 2.0, "beta": 0.5}))
    c = np.random.default_rng(0).random(9 * 70, dtype=np.float32)
    nothing = np.zeros(0, np.float32)
    config = configured(family, values, problem.type, StreamKGrid=3)
    d = run(family, config, problem, {"A": nothing, "B": nothing, "C": c})
    np.testing.assert_array_equal(d, np.float32(0.5) * c)


@pytest.mark.opencl
@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_results_repeat_bit_by_bit(family, values):
    """Ten times over a tile that all work-groups share, and one that two of them do."""
    problem = Problem(NT, (33, 17, 1, 997), (), Configuration({"alpha": 1.5, "beta": -0.5}))
    config = configured(family, values, StreamKGrid=13)
    results = {verify(family, config, problem, seed=3).tobytes() for _ in range(10)}
    assert len(results) == 1


@pytest.mark.opencl
@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_whole_shares_give_the_bits_of_a_work_group_a_tile(family, values):
    """Without a tile that is shared, the order of adding is that of the plain kernel."""
    problem = Problem(NT, (37, 29, 1, 61), (), Configuration({"alpha": 1.5, "beta": -0.5}))
    plain = verify(family, configured(family, values), problem, seed=5)
    waves = verify(family, configured(family, values, StreamKGrid=1), problem, seed=5)
    assert plain.tobytes() == waves.tobytes()


@pytest.mark.opencl
@pytest.mark.parametrize("grid", [4, 7, 16, 40])
@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_no_tile_is_split_where_none_is_to_be(family, values, grid):
    """Whole tiles in waves on any grid, work-groups without one too: the bits of the plain kernel, in one launch."""
    problem = Problem(NT, (37, 29, 2, 61), (), Configuration({"alpha": 1.5, "beta": -0.5}))
    plain = verify(family, configured(family, values), problem, seed=5)
    config = configured(family, values, StreamKGrid=grid, StreamKFullTiles=-1)
    waves = verify(family, config, problem, seed=5)
    assert plain.tobytes() == waves.tobytes()
    (launch,) = family.plan(config, problem, GPU).steps
    assert launch.grid == (grid, 1, 1)


@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_a_grid_that_is_left_open_goes_with_no_other_split(family, values):
    """Legal as it is, and a work-group for each tile where nobody decides."""
    left_open = configured(family, values, StreamKGrid=-1)
    assert not list(family.rejections(left_open, NT, GPU))
    problem = Problem(NT, (37, 29, 1, 61), (), Configuration({"alpha": 1.5, "beta": -0.5}))
    assert family.plan(left_open, problem, GPU) == family.plan(configured(family, values), problem, GPU)
    for more in ({"GlobalSplitU": 2}, {"StreamKFullTiles": 1}, {"StreamKFullTiles": -1}):
        assert [rejection.reason for rejection in family.rejections(left_open | more, NT, GPU)] == ["stream-K"]


@pytest.mark.opencl
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_random_problems_on_random_grids_are_right(family, values, number):
    draw = np.random.default_rng(number)
    for _ in range(5):
        m, n, k = (int(size) for size in draw.integers(1, 90, 3))
        config = configured(
            family, values, StreamKGrid=int(draw.integers(1, 40)), StreamKFullTiles=int(draw.integers(0, 3))
        )
        problem = Problem(NT, (m, n, int(draw.integers(1, 4)), k), (), Configuration({"alpha": 1.25, "beta": -0.5}))
        verify(family, config, problem, seed=number)


# --- planned (no device) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_grid_and_tiles_act_at_launch(family, values):
    """All grids share a program, and are solutions of their own; only that there is one is compiled in."""
    configs = [configured(family, values, StreamKGrid=g, StreamKFullTiles=f) for g, f in ((4, 0), (5, 0), (4, 1))]
    assert len({family.modules(config, NT) for config in configs}) == 1
    assert len({family.identity(Solution(NT, family.name, config)) for config in configs}) == 3
    assert family.modules(configured(family, values), NT) != family.modules(configs[0], NT)


@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_the_launches_follow_the_schedule(family, values):
    problem = Problem(NT, (100, 50, 2, 64))
    tile0, tile1 = family.derived(configured(family, values))["MacroTile"]
    tiles = -(-100 // tile0) * -(-50 // tile1) * 2
    schedule = StreamKSchedule.two_tile(tiles, 16, 11, 1)
    plan = family.plan(configured(family, values, StreamKGrid=11, StreamKFullTiles=1), problem, GPU)
    multiply, add = plan.steps
    assert (multiply.entry, add.entry) == ("gemm", "sum_of_shares")
    assert multiply.grid == (11, 1, 1)
    assert add.grid[1] == schedule.streamed
    assert plan.workspace_bytes >= 2 * 11 * tile0 * tile1 * 4
    numbers = [argument.value for argument in multiply.arguments[-4:]]
    assert numbers == [16, schedule.alone, schedule.per_group, schedule.extra]


@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_nothing_is_added_where_no_tile_is_shared(family, values):
    tile0, tile1 = family.derived(configured(family, values))["MacroTile"]
    plan = family.plan(configured(family, values, StreamKGrid=6), Problem(NT, (4 * tile0, 3 * tile1, 1, 64)), GPU)
    assert [step.entry for step in plan.steps] == ["gemm"]
    assert plan.workspace_bytes <= 256


@pytest.mark.parametrize(
    "values", [{"StreamKGrid": 8, "GlobalSplitU": 2}, {"StreamKFullTiles": 1}, {"StreamKGrid": 2**31}]
)
@pytest.mark.parametrize("family", [TILED, REGISTER], ids=lambda family: family.name)
def test_what_means_nothing_is_rejected(family, values):
    rejections = family.rejections(configured(family, values), NT, GPU)
    assert [rejection.reason for rejection in rejections] == ["stream-K"]


def test_a_guess_orders_a_grid_that_leaves_work_groups_idle_behind_one_that_does_not():
    """133 tiles on 132 compute units: two waves, of which the second has one tile; or split evenly."""
    tile0, tile1 = TILED.derived(configured(TILED, SMALL_TILED))["MacroTile"]
    problem = Problem(NT, (133 * tile0, tile1, 1, 4096))
    waves, even = (configured(TILED, SMALL_TILED, StreamKGrid=g, StreamKFullTiles=f) for g, f in ((133, 0), (132, 1)))
    assert TILED.guess(even, problem, GPU) < TILED.guess(waves, problem, GPU)


def test_sums_that_fit_no_buffer_are_rejected():
    config = configured(TILED, {"StreamKGrid": 4096})
    problem, small = Problem(NT, (640, 640, 1, 64)), replace(GPU, max_allocation_bytes=2**22)
    assert [rejection.reason for rejection in TILED.rejections_for(config, problem, small)] == ["maximum allocation"]
    assert not list(TILED.rejections_for(config, problem, GPU))
