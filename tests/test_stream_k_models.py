"""Stream-K's predictions: Tensile's vectors, the ratios, the costs over all choices, and what a decision says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_k_fakes import COSTLY, calibration, runs_on
from tunesmith.devices.fake import fake_target
from tunesmith.kernels.gemm.stream_k import Schedule
from tunesmith.kernels.gemm.stream_k_tables import loads, peers
from tunesmith.models import _stream_k_tensile as tensile
from tunesmith.models._stream_k_costs import AS_GOOD, COSTS, PEER, SPLITS, TILE, Scan, choices_on, counts, row_on
from tunesmith.models._stream_k_fit import fit
from tunesmith.models.stream_k import (
    Calibrated,
    Calibration,
    Calibrations,
    Choice,
    Decision,
    Mode,
    Portable,
    Predictor,
    Published,
    Room,
    Run,
    Subject,
    Tile,
    Work,
    calibration_runs,
)

BIG = Tile(256, 256, 64)
H200, MI300X = Room(132), Room(304)

works = st.builds(
    Work, tiles=st.integers(1, 90), iterations=st.integers(1, 60), depth=st.just(32), down=st.integers(0, 90)
)
rooms = st.builds(Room, st.integers(1, 30), st.integers(1, 3), st.sampled_from(((0, 0), (3, 1), (40, 90), (900, 999))))


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
        assert tensile.seconds(tiles, work.iterations, grid) * 1e6 == pytest.approx(micro, abs=0.005)
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
    """The largest remainder that still gets a full wave, on the curve's chip."""
    assert max(r for r in range(1, 304) if tensile.full_tiles(r, k, 304) == 1) == largest


def test_without_a_remainder_nothing_is_streamed():
    assert tensile.full_tiles(0, 128, 304) == 0
    assert Published(MI300X).choose(Work(608, 64, 64)).mode is Mode.DATA_PARALLEL


def test_the_gate_lets_only_the_curves_chip_pass_unless_lifted():
    few = Work(1001, 16, 64)
    assert Published(Room(100)).choose(few) == Choice(100, 1)
    assert Published(Room(100), gated=False).choose(few) == Choice(100, 101)
    assert Published(MI300X).choose(Work(305, 16, 64)) == Choice(304, 305)


def test_k_is_rounded_up_to_whole_iterations_before_the_curve_is_asked():
    """K = 500 counts as 512, where a remainder of 303 is still too few and below which all are."""
    work = Tile(256, 256, 64).work(256 * (304 + 303), 256, 1, 500)
    assert work.k == 512
    assert Published(MI300X).choose(work).streamed == 304 + 303


def test_the_analytical_grid_looks_at_every_grid():
    """Two shipped defects: the search began where it should have ended, and took the last grid instead of the best."""
    for units in (7, 64, 108, 132, 304):
        best = min(range(1, units + 1), key=lambda grid: (tensile.seconds(37, 50, grid), grid))
        assert tensile.analytical_grid(37, 50, units) == best


# --- ratios ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "choice"),
    [
        (Work(1000, 64, 64), Choice(100)),
        (Work(1001, 64, 64), Choice(100, 101)),  # 0.64 iterations for each: a full wave goes along
        (Work(130, 64, 64), Choice(100, 30)),  # 19 iterations for each
        (Work(101, 300, 64), Choice(100, 1)),  # three for each
        (Work(101, 299, 64), Choice(100, 101)),
        (Work(101, 5, 64), Choice(100)),  # a wave saved is not worth a split
        (Work(9901, 640, 64), Choice(100)),  # the last of 100 waves is 1 %
        (Work(60, 11, 64), Choice(60)),  # two halves would save less than they cost
        (Work(50, 12, 64), Choice(100, 50)),  # from 12 iterations on, two halves pay
        (Work(1, 1024, 64), Choice(16, 1)),  # about sqrt(1024 / 4.457)
        (Work(1, 4, 64), Choice(1)),
    ],
)
def test_rules_of_thumb(work, choice):
    assert Portable(Room(100)).choose(work) == choice


@settings(deadline=None)
@given(work=works, room=rooms)
def test_a_share_by_the_rules_has_three_iterations_or_the_tile_is_whole(work, room):
    choice = Portable(room).choose(work)
    assert choice.grid <= room.groups
    if choice.streamed:
        assert choice.streamed * work.iterations >= 3 * choice.grid


# --- costs ----------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(work=works, room=rooms, part=st.floats(0, 1), grid=st.integers(1, 90))
def test_what_costs_are_multiplied_by_is_counted_from_the_schedule(work, room, part, grid):
    """Iterations exactly; tiles begun and peers exactly or one too many, where shares run across tiles."""
    streamed = round(part * work.tiles)
    schedule = Schedule(work.tiles, work.iterations, grid, streamed)
    found = counts(work, Choice(grid, streamed), room)
    assert found[list(COSTS).index("iteration")] == loads(schedule).iterations.max()
    assert 0 <= found[TILE] + 1 - loads(schedule).segments.max() <= 1
    assert 0 <= found[PEER] + 1 - peers(schedule).max() <= 1


@settings(deadline=None)
@given(work=works, room=rooms, seed=st.integers(0, 99))
def test_the_scan_is_the_model_on_every_choice(work, room, seed):
    scan = Scan(np.random.default_rng(seed).random(len(COSTS)), room)
    table = scan.table(work)
    assert table.shape == (3, room.groups)
    for grid in range(1, room.groups + 1):
        for row in range(3):
            seconds, choice = table[row, grid - 1], row_on(work, grid, row)
            if row == 0 or (work.tiles % grid and (row == 1 or work.tiles > grid)):
                assert seconds == pytest.approx(scan.seconds(work, choice))
            else:
                assert seconds == np.inf
    for seconds, parts in scan.splits(work):
        assert seconds == pytest.approx(scan.seconds(work, scan.split(work, parts)))


@settings(deadline=None)
@given(work=works, room=rooms, seed=st.integers(0, 99))
def test_nothing_is_faster_than_what_is_chosen(work, room, seed):
    """By more than what counts as equal; also not with more full waves than are looked at: the model has no use for a
    second one. Whole tiles are launched with a work-group each."""
    scan = Scan(np.random.default_rng(seed).random(len(COSTS)), room)
    choice, seconds = scan.best(work)
    whole = Choice(min(max(work.tiles, 1), room.groups))
    grids = [grid for grid in range(1, room.groups + 1) if work.tiles % grid]  # else shares are whole tiles, on fewer
    every = [whole, *(one for full in range(5) for grid in grids for one in choices_on(work, grid, full))]
    every += [
        Choice(min(work.tiles * parts, room.groups), splits=parts) for parts in SPLITS if parts <= work.iterations
    ]
    least = min(scan.seconds(work, one) for one in every)
    assert least * (1 - 1e-9) <= seconds <= least * (1 + AS_GOOD)
    assert scan.seconds(work, choice) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("work", "mode"),
    [
        (Work(264, 64, 64), Mode.DATA_PARALLEL),
        (Work(140, 256, 64), Mode.STREAM_K),
        (Work(8, 1024, 64), Mode.STREAM_K),
        (Work(132, 2, 64), Mode.DATA_PARALLEL),
    ],
)
def test_each_mode_wins_where_it_should(work, mode):
    assert Calibrated(calibration(H200)).choose(work).mode is mode


def only(name: str) -> np.ndarray:
    """Costs of which all others are nothing."""
    costs = np.zeros(len(COSTS))
    costs[list(COSTS).index(name)] = 1
    return costs


CACHED = Room(132, 1, (1920, 3840))
"""An H200 with tiles of 256 x 128 x 64 in 16 bits: 60 MiB of cache."""


@pytest.mark.parametrize(
    ("work", "choice", "waits"),
    [
        (Work(132, 4096, 64), Choice(132), 0),  # side by side, 11 in a column share what 12 in a row share
        (Work(132, 4096, 64, down=1), Choice(132), 0.05),  # all have A's piece in common, nobody one of B
        (Work(132, 4096, 64, down=132), Choice(132), 0.52),  # and the other way round: A's piece is twice B's
        (Work(132, 4, 64, down=132), Choice(132), 0.52),  # which is fetched once, however small
        (Work(264, 4096, 64), Choice(132, streamed=264), 0),  # two whole tiles each
        (Work(66, 4096, 64), Choice(132, streamed=66), 0),  # halves of tiles: two places of K
        (Work(144, 4096, 64), Choice(132, streamed=144), 1),  # a share ends anywhere
        (Work(144, 4096, 64), Choice(66, streamed=144), 0.29),  # and half of the work-groups fetch half as much
        (Work(144, 32, 64), Choice(132, streamed=144), 0),  # of operands that the cache holds
        (Work(144, 512, 64), Choice(132, streamed=144), 1),
        (Work(144, 64, 64), Choice(132, streamed=144), 0.25),  # 0.6 of the cache are a column's: some of it is lost
        (Work(276, 4096, 64), Choice(132, streamed=12), 1 / 23),  # a share of 1/11, and two whole tiles
        (Work(66, 4096, 64), Choice(132, splits=2), 0),  # one turn
        (Work(264, 4096, 64), Choice(132, splits=4), 0.58),  # eight turns: of 33 keep eight in step, in a column
        (Work(264, 4096, 64, block=2), Choice(132, splits=4), 0.17),  # two columns of four
        (Work(264, 4096, 64, block=4), Choice(132, splits=4), 0.05),  # and four of two
        (Work(132, 4096, 64, down=1, block=4), Choice(132), 0.05),  # one row of blocks is one row of tiles
    ],
)
def test_who_finds_nothing_in_the_cache_waits_for_memory(work, choice, waits):
    """Of the iterations of the work-group that has most."""
    schedule = Schedule(work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
    found = Scan(only("misaligned"), CACHED).seconds(work, choice)
    assert found == pytest.approx(waits * schedule.busiest, abs=0.01 * schedule.busiest)


@pytest.mark.parametrize(
    ("work", "choice", "apart"),
    [
        (Work(264, 4096, 64), Choice(132, splits=4), 1),
        (Work(33, 4096, 64), Choice(132, splits=4), 0),  # one turn
        (Work(264, 16, 64), Choice(132, splits=4), 0),  # of operands that the cache holds
        (Work(264, 4096, 64), Choice(132), 0),
        (Work(144, 4096, 64), Choice(132, streamed=144), 0),
    ],
)
def test_parts_of_k_lose_step_in_several_turns(work, choice, apart):
    scan = Scan(only("apart"), CACHED)
    schedule = Schedule(work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
    assert scan.seconds(work, choice) == pytest.approx(apart * schedule.busiest)
    assert scan.splits(work)[SPLITS.index(4)][0] == scan.seconds(work, scan.split(work, 4))


def test_split_k_collects_in_every_turn():
    """264 tiles in 4 parts on 132 work-groups are 8 turns, in each of which somebody waits for three others."""
    assert Scan(only("peer"), H200).seconds(Work(264, 64, 64), Choice(132, splits=4)) == 8 * 3
    assert Scan(only("partial"), H200).seconds(Work(264, 64, 64), Choice(132, splits=4)) == 8


def test_equals_go_to_what_splits_less():
    """All costs but iterations are nothing: 132 tiles on 132 work-groups are equally fast however they are cut."""
    assert Scan(only("iteration"), H200).best(Work(132, 16, 64))[0] == Choice(132)


def test_of_grids_as_good_the_largest_is_taken():
    """133 tiles of 64 iterations are 65 for whom has most, on 131 work-groups and on 132."""
    assert Scan(only("iteration"), H200).best(Work(133, 64, 64)) == (Choice(132, streamed=1), 65)


# --- the fit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [H200, Room(132, 2), Room(108), Room(64), MI300X, Room(2)], ids=str)
def test_a_fit_finds_the_costs_that_made_the_runs(room):
    """1 % of noise, and one run that somebody disturbed."""
    runs = runs_on(room, noise=0.01)
    runs[5] = Run(runs[5].work, runs[5].choice, 3 * runs[5].seconds)
    fitted = fit(runs, room, np.random.default_rng(0))
    features = np.array([counts(run.work, run.choice, room) for run in runs])
    assert features @ fitted.costs == pytest.approx(features @ COSTLY, rel=0.03)
    assert fitted.scatter < 0.02
    told_apart = features.any(axis=0) & (fitted.high < 2 * np.maximum(fitted.costs, 1e-12))
    assert told_apart.sum() >= 6
    np.testing.assert_array_less(fitted.low[told_apart] * 0.95, COSTLY[told_apart])
    np.testing.assert_array_less(COSTLY[told_apart], fitted.high[told_apart] * 1.05)


@pytest.mark.parametrize("room", [H200, Room(132, 2), MI300X], ids=str)
def test_about_forty_runs_of_whole_tiles(room):
    runs = calibration_runs(room, Tile(128, 128, 64))
    assert 30 <= len(runs) <= 45
    assert len(set(runs)) == len(runs)
    assert max(choice.grid for _, choice in runs) <= room.groups
    assert max(work.k for work, _ in calibration_runs(room, Tile(64, 64, 8))) == max(work.k for work, _ in runs)


def test_what_split_k_costs_is_measured_where_there_is_split_k():
    tile = Tile(256, 128, 64)
    without, runs = calibration_runs(CACHED, tile), calibration_runs(CACHED, tile, SPLITS)
    assert [run for run in runs if run not in without] == [run for run in runs if run[1].splits > 1]
    assert all(work.tiles * choice.splits > choice.grid for work, choice in runs if choice.splits > 1)
    assert (len(without), len(runs)) == (42, 44)


def test_costs_are_not_negative_whatever_the_runs_say():
    random = np.random.default_rng(3)
    runs = [Run(run.work, run.choice, float(random.uniform(1e-6, 1e-3))) for run in runs_on(H200)]
    fitted = fit(runs, H200, random, resamples=10)
    assert (fitted.costs >= 0).all()
    assert (fitted.low <= fitted.costs).all()
    assert (fitted.costs <= fitted.high).all()


def test_too_few_runs_are_no_fit():
    with pytest.raises(ValueError, match="9 costs cannot be fitted to 7 runs"):
        fit(runs_on(H200)[:7], H200, np.random.default_rng(0))


def test_an_interval_holds_what_it_says():
    """Of new runs, about 95 %."""
    model, random = Calibrated(calibration(H200, noise=0.02)), np.random.default_rng(7)
    inside, planned = 0, calibration_runs(H200, Tile(128, 128, 32))
    for work, choice in planned:
        seconds, (low, high) = model.expect(work, choice)
        took = float(counts(work, choice, H200) @ COSTLY) * (1 + 0.02 * random.standard_normal())
        assert low < seconds < high
        inside += low <= took <= high
    assert inside >= 0.85 * len(planned)


# --- decisions ------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(work=works, room=rooms, seed=st.integers(0, 20))
def test_a_decision_is_a_schedule_and_parameters_that_mean_it(work, room, seed):
    scan = Scan(np.random.default_rng(seed).random(len(COSTS)), room)
    decision = Decision(work, scan.best(work)[0], "any")
    schedule, parameters = decision.schedule, decision.parameters
    assert (schedule.tiles, schedule.iterations) == (work.tiles, work.iterations)
    match decision.mode:
        case Mode.STREAM_K:
            again = Schedule.two_tile(
                work.tiles, work.iterations, parameters.integer("StreamKGrid"), parameters.integer("StreamKFullTiles")
            )
            assert again == schedule
            assert parameters["GlobalSplitU"] == 1
        case Mode.SPLIT_K:
            assert parameters["GlobalSplitU"] == schedule.splits > 1
            assert parameters["StreamKGrid"] == 0
        case Mode.DATA_PARALLEL:
            assert set(parameters.values()) == {0, 1}


def test_batch_counts_as_tiles():
    predictor = Predictor(Tile(128, 128, 64), Calibrated(calibration(H200)))
    batched, wide = predictor.decide(512, 512, 9, 4096), predictor.decide(512, 9 * 512, 1, 4096)
    assert batched.tiles == wide.tiles == 144
    assert batched.choice == wide.choice


def test_a_product_is_decided_once():
    predictor = Predictor(BIG, Portable(H200))
    assert predictor.decide(4096, 4096, 1, 4096) is predictor.decide(4096, 4096, 1, 4096)
    assert predictor.decide(4096, 4096, 1, 4095) is not predictor.decide(4096, 4096, 1, 4096)


@pytest.mark.parametrize("sizes", [(0, 5, 1, 7), (5, 0, 1, 7), (5, 5, 0, 7), (5, 5, 1, 0)])
@pytest.mark.parametrize(
    "model", [Calibrated(calibration(H200)), Portable(H200), Published(H200)], ids=lambda m: m.name
)
def test_empty_products_are_decided_too(model, sizes):
    assert Predictor(BIG, model).decide(*sizes).schedule.tiles == (0 if 0 in sizes[:3] else 1)


def test_without_a_calibration_the_rules_of_thumb_hold_and_that_is_said_once():
    said = []
    target, tile, room = fake_target(), Tile(64, 64, 16), Room(8)
    known = calibration(room, Subject.of(target, "FakeGemm", "s", tile, room))
    calibrations = Calibrations([known], said.append)
    assert isinstance(calibrations.model(target, "FakeGemm", "s", tile, room), Calibrated)
    assert said == []
    for _ in range(3):
        assert isinstance(calibrations.model(target, "FakeGemm", "d", tile, room), Portable)
    assert len(said) == 1
    assert "FakeGemm d 64x64x16 on fake GPU" in said[0]


def test_another_driver_is_said():
    said = []
    target, tile, room = fake_target(), Tile(64, 64, 16), Room(8)
    known: Calibration = calibration(room, Subject.of(target, "FakeGemm", "s", tile, room), driver="0.9")
    assert isinstance(Calibrations([known], said.append).model(target, "FakeGemm", "s", tile, room), Calibrated)
    assert "driver 0.9, this is 1.0" in said[0]


def test_deciding_needs_no_scipy():
    """A running program decides; only calibrating fits."""
    program = "import sys, tunesmith.models.stream_k; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"scipy", "yaml", "sqlalchemy", "jinja2"} & set(done.stdout.split())
