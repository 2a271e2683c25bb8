"""Stream-K's predictions: Tensile's published numbers, the portable ratios, and decisions."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_k_fakes import H200, MI300X, calibration, rooms, works
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import family_for
from tunesmith.kernels.gemm.stream_k import StreamKSchedule
from tunesmith.models.stream_k import tensile as tensile
from tunesmith.models.stream_k.costs import COSTS, SPLITS, Scan
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    Calibrations,
    DeviceCapacity,
    MacroTile,
    PortableModel,
    Predictor,
    SharingMode,
    StreamKCalibration,
    StreamKChoice,
    StreamKDecision,
    Subject,
    TensileModel,
    TiledProduct,
)
from tunesmith.models.stream_k.launch_decisions import tile_of
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Solution

BIG = MacroTile(256, 256, 64)


# --- Tensile's ------------------------------------------------------------------------------------------------------

VECTORS = [
    # Sizes, tiles; on 304 compute units the grids of modes 1 and 2, then mode 3's grid, time, iterations and peers;
    # on 132 those of modes 2 and 3.
    ((4096, 4096, 4096), 256, 256, 256, (304, 262.58, 54, 2), 128, (132, 534.59, 125, 1)),
    ((256, 256, 8192), 1, 1, 1, (5, 201.59, 26, 5), 1, (5, 201.59, 26, 5)),
    ((128, 128, 16384), 1, 1, 1, (8, 282.38, 32, 8), 1, (8, 282.38, 32, 8)),
    ((1024, 1024, 1024), 16, 16, 16, (32, 70.76, 8, 2), 16, (32, 70.76, 8, 2)),
    ((512, 512, 512), 4, 4, 4, (4, 46.70, 8, 1), 4, (4, 46.70, 8, 1)),
    ((8192, 8192, 512), 1024, 304, 256, (304, 125.93, 27, 1), 128, (131, 276.05, 63, 1)),
    ((3328, 3328, 4096), 169, 169, 169, (301, 187.52, 36, 2), 113, (132, 355.28, 82, 1)),
]


@pytest.mark.parametrize(("sizes", "tiles", "mode1", "mode2", "mode3", "mode2_132", "mode3_132"), VECTORS)
def test_published_grids(sizes, tiles, mode1, mode2, mode3, mode2_132, mode3_132):
    m, n, k = sizes
    work = BIG.work(m, n, 1, k)
    assert work.tiles == tiles
    for units, even, (grid, micro, iterations, met) in ((304, mode2, mode3), (132, mode2_132, mode3_132)):
        assert tensile.dynamic_grid(2, tiles, work.iterations, units) == even
        assert tensile.dynamic_grid(3, tiles, work.iterations, units) == grid
        assert tensile.microseconds(tiles, work.iterations, grid) == pytest.approx(micro, abs=0.005)
        assert -(-tiles * work.iterations // grid) == iterations
        assert -(-work.iterations // iterations) == met
    assert tensile.dynamic_grid(1, tiles, work.iterations, 304) == mode1


@pytest.mark.parametrize(
    ("k", "largest"),
    [
        (512, 303),
        (640, 252),
        (768, 200),
        (1024, 74),
        (2048, 29),
        (4096, 13),
        (8192, 4),
        (16384, 3),
        (32768, 3),
        (256, 303),
    ],
)
def test_published_curve(k, largest):
    """`largest` is the largest remainder that still gets a full wave, on the curve's chip."""
    assert max(r for r in range(1, 304) if tensile.full_tiles(r, k, 304) == 1) == largest


def test_without_a_remainder_nothing_is_streamed():
    assert tensile.full_tiles(0, 128, 304) == 0
    assert TensileModel(MI300X).choose(TiledProduct(608, 64, 64)).mode is SharingMode.DATA_PARALLEL


def test_the_curve_holds_for_its_chip_only_unless_the_gate_is_lifted():
    few = TiledProduct(1001, 16, 64)
    assert TensileModel(DeviceCapacity(100)).choose(few) == StreamKChoice(100, 1)
    assert TensileModel(DeviceCapacity(100), gated=False).choose(few) == StreamKChoice(100, 101)
    assert TensileModel(MI300X).choose(TiledProduct(305, 16, 64)) == StreamKChoice(304, 305)


def test_k_is_rounded_up_to_whole_iterations_before_the_curve_is_asked():
    """K = 500 counts as 512. There a remainder of 303 still gets a full wave; for smaller K every remainder does."""
    work = MacroTile(256, 256, 64).work(256 * (304 + 303), 256, 1, 500)
    assert work.k == 512
    assert TensileModel(MI300X).choose(work).streamed == 304 + 303


@pytest.mark.parametrize(
    ("tiles", "compute_units", "grid"),
    [
        (4, 4, 4),
        (5, 4, 4),  # 3 of 4 in equal waves are no more than three quarters, and 10 half-waves need all
        (9, 8, 8),
        (7, 8, 7),
        (9, 5, 5),
        (8, 5, 4),  # 4 of 5 are enough
    ],
)
def test_equal_waves_must_keep_more_than_three_quarters_busy(tiles, compute_units, grid):
    assert tensile.even_grid(tiles, compute_units) == grid


@pytest.mark.parametrize(("tiles", "iterations"), [(1, 1), (1, 3)])
def test_of_equally_fast_grids_the_analytical_grid_is_the_smallest(tiles, iterations):
    assert tensile.analytical_grid(tiles, iterations, 8) == 1


def test_the_analytical_grid_looks_at_every_grid():
    """Tensile shipped two defects: the search began where it should have ended, and took the last grid, not the
    best."""
    for units in (1, 2, 7, 64, 108, 132, 304):
        best = min(range(1, units + 1), key=lambda grid: (tensile.microseconds(37, 50, grid), grid))
        assert tensile.analytical_grid(37, 50, units) == best


# --- ratios ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "choice"),
    [
        (TiledProduct(1000, 64, 64), StreamKChoice(100)),
        (TiledProduct(1001, 64, 64), StreamKChoice(100, 101)),  # 0.64 iterations for each: a full wave is streamed too
        (TiledProduct(130, 64, 64), StreamKChoice(100, 30)),  # 19 iterations for each
        (TiledProduct(101, 300, 64), StreamKChoice(100, 1)),  # three for each
        (TiledProduct(101, 299, 64), StreamKChoice(100, 101)),
        (TiledProduct(101, 5, 64), StreamKChoice(100)),  # a wave saved is not worth a split
        (TiledProduct(9901, 640, 64), StreamKChoice(100)),  # the last of 100 waves is 1 %
        (TiledProduct(60, 11, 64), StreamKChoice(60)),  # two halves would save less than they cost
        (TiledProduct(50, 12, 64), StreamKChoice(100, 50)),  # from 12 iterations on, two halves pay
        (TiledProduct(1, 1024, 64), StreamKChoice(16, 1)),  # about sqrt(1024 / 4.457)
        (TiledProduct(1, 4, 64), StreamKChoice(1)),
        (TiledProduct(50, 11, 64), StreamKChoice(50)),
        (TiledProduct(160, 8, 64), StreamKChoice(100)),  # 40 % of a wave of 8 iterations are fewer than a split costs
        (TiledProduct(130, 8, 64), StreamKChoice(100)),  # and so are 70 %
        (TiledProduct(130, 9, 64), StreamKChoice(100, 130)),
        (TiledProduct(0, 64, 64), StreamKChoice(1)),
        (TiledProduct(51, 1024, 64), StreamKChoice(51)),  # 49 work-groups are too few for a second part of each
        (TiledProduct(33, 1024, 64), StreamKChoice(99, 33)),
        (TiledProduct(100, 1024, 64), StreamKChoice(100)),
        (TiledProduct(184, 64, 64), StreamKChoice(100)),  # 92 % of two waves are enough
        (TiledProduct(183, 64, 64), StreamKChoice(100, 83)),
    ],
)
def test_rules_of_thumb(work, choice):
    assert PortableModel(DeviceCapacity(100)).choose(work) == choice


@settings(deadline=None)
@given(work=works, room=rooms)
def test_a_share_by_the_rules_has_three_iterations_or_the_tile_is_whole(work, room):
    choice = PortableModel(room).choose(work)
    assert choice.grid <= room.groups
    if choice.streamed:
        assert choice.streamed * work.iterations >= 3 * choice.grid


@pytest.mark.parametrize("groups", range(1, 16))
def test_a_single_tile_is_split_among_as_many_as_there_are_and_as_pays(groups):
    """Sixteen would be best for 1024 iterations."""
    choice = PortableModel(DeviceCapacity(groups)).choose(TiledProduct(1, 1024, 64))
    assert choice == StreamKChoice(groups, 1 if groups > 1 else 0)


# --- decisions ------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(work=works, room=rooms, seed=st.integers(0, 20))
def test_a_decision_is_a_schedule_and_parameters_that_mean_it(work, room, seed):
    scan = Scan(np.random.default_rng(seed).random(len(COSTS)), room)
    decision = StreamKDecision(work, scan.best(work)[0], "any")
    schedule, parameters = decision.schedule, decision.parameters
    assert (schedule.tiles, schedule.iterations) == (work.tiles, work.iterations)
    match decision.mode:
        case SharingMode.STREAM_K:
            launched = StreamKSchedule.two_tile(
                work.tiles, work.iterations, parameters.integer("StreamKGrid"), parameters.integer("StreamKFullTiles")
            )
            assert launched == schedule
            assert parameters["GlobalSplitU"] == 1
        case SharingMode.SPLIT_K:
            assert parameters["GlobalSplitU"] == schedule.splits > 1
            assert parameters["StreamKGrid"] == 0
        case SharingMode.DATA_PARALLEL:
            assert set(parameters.values()) == {0, 1}


@pytest.mark.parametrize(
    ("choice", "full_tiles", "parameters", "on_grid"),
    [
        (StreamKChoice(8), 0, (0, 0, 1), (8, -1, 1)),
        (StreamKChoice(1), 0, (0, 0, 1), (1, -1, 1)),
        (StreamKChoice(8, streamed=4), 0, (8, 0, 1), (8, 0, 1)),
        (StreamKChoice(8, streamed=12), 1, (8, 1, 1), (8, 1, 1)),
        (StreamKChoice(8, streamed=20), 2, (8, 2, 1), (8, 2, 1)),
        (StreamKChoice(10, streamed=10), 1, (10, 1, 1), (10, 1, 1)),
        (StreamKChoice(8, splits=2), 0, (0, 0, 2), (8, -1, 1)),
    ],
)
def test_a_decision_is_launched_on_its_grid_if_a_person_asked_for_that(choice, full_tiles, parameters, on_grid):
    """There are 20 tiles: on 8 work-groups two full waves and 4 tiles, on 10 two full waves. -1 splits no tile."""
    names = ("StreamKGrid", "StreamKFullTiles", "GlobalSplitU")
    decision = StreamKDecision(TiledProduct(20, 64, 64), choice)
    assert decision.full_tiles == full_tiles
    assert decision.parameters == Configuration(dict(zip(names, parameters, strict=True)))
    assert decision.on_grid == Configuration(dict(zip(names, on_grid, strict=True)))
    assert replace(decision, overridden=("SOME_VARIABLE",)).parameters == decision.on_grid


def test_whole_tiles_and_parts_have_a_work_group_each_as_far_as_the_device_has_room():
    room = DeviceCapacity(10, 2)
    whole = [StreamKChoice.whole_tiles(TiledProduct(tiles, 64, 64), room).grid for tiles in (0, 1, 19, 20, 21)]
    assert whole == [1, 1, 19, 20, 20]
    split = [StreamKChoice.split_k(TiledProduct(tiles, 64, 64), room, 3) for tiles in (1, 6, 7, 40)]
    assert split == [StreamKChoice(grid, splits=3) for grid in (3, 18, 20, 20)]


def test_the_choice_is_the_fastest_among_the_best_of_each_kind():
    model, work = CalibratedModel(calibration(H200)), TiledProduct(140, 256, 64)
    considered = list(model.considered(work))
    assert [choice.mode for choice in considered] == [
        SharingMode.DATA_PARALLEL,
        *[SharingMode.STREAM_K] * 2,
        *[SharingMode.SPLIT_K] * len(SPLITS),
    ]
    assert considered[0] == StreamKChoice(132)
    assert [choice.streamed // choice.grid for choice in considered[1:3]] == [0, 1]
    assert model.choose(work) == min(considered, key=lambda choice: model.expect(work, choice)[0])


def test_batch_counts_as_tiles():
    predictor = Predictor(MacroTile(128, 128, 64), CalibratedModel(calibration(H200)))
    batched, wide = predictor.decide(512, 512, 9, 4096), predictor.decide(512, 9 * 512, 1, 4096)
    assert batched.work.tiles == wide.work.tiles == 144
    assert batched.choice == wide.choice


def test_a_product_is_decided_once():
    predictor = Predictor(BIG, PortableModel(H200))
    assert predictor.decide(4096, 4096, 1, 4096) is predictor.decide(4096, 4096, 1, 4096)
    assert predictor.decide(4096, 4096, 1, 4095) is not predictor.decide(4096, 4096, 1, 4096)


@pytest.mark.parametrize("sizes", [(0, 5, 1, 7), (5, 0, 1, 7), (5, 5, 0, 7), (5, 5, 1, 0)])
@pytest.mark.parametrize(
    "model", [CalibratedModel(calibration(H200)), PortableModel(H200), TensileModel(H200)], ids=lambda m: m.name
)
def test_empty_products_are_decided_too(model, sizes):
    assert Predictor(BIG, model).decide(*sizes).schedule.tiles == (0 if 0 in sizes[:3] else 1)


@pytest.mark.parametrize(("data_type", "size"), [("s", 4), ("x", 4), ("d", 8), ("h", 2), ("b", 2)])
def test_the_iterations_that_fit_into_the_cache_count_elements_as_they_are_stored(data_type, size):
    """TF32 is stored as float32."""
    target, tile = fake_target(), MacroTile(64, 32, 16)
    cached = Subject.of(target, "FakeGemm", data_type, tile, DeviceCapacity(8)).room.cached
    rows = target.last_level_cache_bytes // (16 * size)
    assert cached == (rows // 64, rows // 32)


def test_without_a_calibration_the_portable_model_is_used_with_one_warning():
    warnings = []
    target, tile, room = fake_target(), MacroTile(64, 64, 16), DeviceCapacity(8)
    calibrated = calibration(room, Subject.of(target, "FakeGemm", "s", tile, room))
    calibrations = Calibrations([calibrated], warnings.append)
    assert isinstance(
        calibrations.model(Subject.of(target, "FakeGemm", "s", tile, room), target.driver), CalibratedModel
    )
    assert warnings == []
    for _ in range(3):
        assert isinstance(
            calibrations.model(Subject.of(target, "FakeGemm", "d", tile, room), target.driver), PortableModel
        )
    assert len(warnings) == 1
    assert "FakeGemm d 64x64x16 on fake GPU" in warnings[0]


def test_a_calibration_of_another_driver_gives_a_warning():
    warnings = []
    target, tile, room = fake_target(), MacroTile(64, 64, 16), DeviceCapacity(8)
    older: StreamKCalibration = calibration(room, Subject.of(target, "FakeGemm", "s", tile, room), driver="0.9")
    assert isinstance(Calibrations([older], warnings.append).model(older.subject, target.driver), CalibratedModel)
    assert "driver 0.9, this is 1.0" in warnings[0]


def test_of_calibrations_that_differ_in_occupancy_the_widest_is_meant():
    """A calibration of another kernel, or of fewer multiprocessors, is another subject's."""
    whole = Subject("CUDA", "a GPU", "sm_90", "SomeGemm", "s", MacroTile(64, 64, 16), DeviceCapacity(8))
    any_calibration = calibration(whole.room, whole)

    def widest(*subjects):
        return Calibrations(replace(any_calibration, subject=subject) for subject in subjects).widest(whole)

    twice, thrice, wider = (replace(whole, room=room) for room in map(DeviceCapacity, (8, 8, 9), (2, 3, 4)))
    other = replace(thrice, kernel="OtherGemm")
    assert widest() == widest(wider, other) == whole
    assert widest(whole, twice, wider, other) == twice
    assert widest(thrice, twice) == widest(twice, thrice) == thrice


@pytest.mark.parametrize(
    ("parameters", "block"),
    [
        ({"KernelLanguage": "CUDA", "MatrixInstruction": "wgmma"}, 4),
        ({"KernelLanguage": "CUDA", "MatrixInstruction": "wgmma", "WorkGroupMapping": 8}, 8),
        ({"KernelLanguage": "Triton", "Schedule": "StreamK"}, 1),
    ],
)
def test_a_tile_has_the_block_in_which_work_groups_walk(parameters, block):
    problem_type = gemm_type("h", use_beta=False)
    family = family_for("GEMM", Configuration(parameters))
    config = family.space(problem_type).defaults | parameters
    tile = tile_of(Solution(problem_type, family.name, config))
    assert tile.block == tile.work(1000, 1000, 1, 1000).block == block


def test_deciding_needs_no_scipy():
    """A running program only decides; fits are made by `tunesmith calibrate`."""
    program = "import sys, tunesmith.models.stream_k.decision_models; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"scipy", "yaml", "sqlalchemy", "jinja2"} & set(process.stdout.split())
