"""The calibrated cost model of stream-K: its terms, the scan over all choices, and the fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_k_fakes import COSTLY, H200, MI300X, calibration, rooms, runs_on, works
from stream_k_tables import loads, peers
from tunesmith.kernels.gemm.stream_k import StreamKSchedule
from tunesmith.models.stream_k.costs import (
    APART,
    AS_GOOD,
    COSTS,
    MISALIGNED,
    PEER,
    SPLITS,
    TILE,
    Scan,
    choices_on_grid,
    counts,
    row_on,
)
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    DeviceCapacity,
    MacroTile,
    SharingMode,
    StreamKChoice,
    StreamKRun,
    TiledProduct,
    calibration_runs,
)
from tunesmith.models.stream_k.fit import fit
from tunesmith.models.stream_k.records import squarest


@settings(deadline=None)
@given(work=works, room=rooms, part=st.floats(0, 1), grid=st.integers(1, 90))
def test_the_factors_of_costs_are_counted_from_the_schedule(work, room, part, grid):
    """Iterations are exact. If shares extend over tile boundaries, tiles begun and peers may be one too many."""
    streamed = round(part * work.tiles)
    schedule = StreamKSchedule(work.tiles, work.iterations, grid, streamed)
    factors = counts(work, StreamKChoice(grid, streamed), room)
    assert factors[list(COSTS).index("iteration")] == loads(schedule).iterations.max()
    assert 0 <= factors[TILE] + 1 - loads(schedule).segments.max() <= 1
    assert 0 <= factors[PEER] + 1 - peers(schedule).max() <= 1


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
    for choice, seconds in scan.splits(work):
        assert seconds == pytest.approx(scan.seconds(work, choice))


@settings(deadline=None)
@given(work=works, room=rooms, seed=st.integers(0, 99))
def test_no_choice_is_faster_than_the_best_beyond_the_tolerance(work, room, seed):
    """This includes choices with more full waves than the scan considers: in the model a second full wave never pays.
    Whole tiles are launched with a work-group each."""
    scan = Scan(np.random.default_rng(seed).random(len(COSTS)), room)
    choice, seconds = scan.best(work)
    whole = StreamKChoice.whole_tiles(work, room)
    grids = [grid for grid in range(1, room.groups + 1) if work.tiles % grid]  # else shares are whole tiles, on fewer
    every = [
        whole,
        *(streamed for full in range(5) for grid in grids for streamed in choices_on_grid(work, grid, full)),
    ]
    every += [StreamKChoice.split_k(work, room, parts) for parts in SPLITS if parts <= work.iterations]
    least = min(scan.seconds(work, any_choice) for any_choice in every)
    assert least * (1 - 1e-9) <= seconds <= least * (1 + AS_GOOD)
    assert scan.seconds(work, choice) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("work", "mode"),
    [
        (TiledProduct(264, 64, 64), SharingMode.DATA_PARALLEL),
        (TiledProduct(140, 256, 64), SharingMode.STREAM_K),
        (TiledProduct(8, 1024, 64), SharingMode.STREAM_K),
        (TiledProduct(132, 2, 64), SharingMode.DATA_PARALLEL),
    ],
)
def test_each_mode_wins_where_it_should(work, mode):
    assert CalibratedModel(calibration(H200)).choose(work).mode is mode


def only(name):
    """Costs of 1 for one term, and 0 for all others."""
    costs = np.zeros(len(COSTS))
    costs[list(COSTS).index(name)] = 1
    return costs


CACHED = DeviceCapacity(132, 1, (1920, 3840))
"""An H200 with tiles of 256 x 128 x 64 in 16 bits: 60 MiB of cache."""


@pytest.mark.parametrize(
    ("work", "choice", "waits"),
    [
        (
            TiledProduct(132, 4096, 64),
            StreamKChoice(132),
            0,
        ),  # adjacent tiles: 11 in a column share B, 12 in a row share A
        (TiledProduct(132, 4096, 64, down=1), StreamKChoice(132), 0.05),  # all share the piece of A, none a piece of B
        (
            TiledProduct(132, 4096, 64, down=132),
            StreamKChoice(132),
            0.52,
        ),  # the other way round: A's piece is twice B's
        (TiledProduct(132, 4, 64, down=132), StreamKChoice(132), 0.52),  # a first fetch, however small the product
        (TiledProduct(264, 4096, 64), StreamKChoice(132, streamed=264), 0),  # two whole tiles each
        (TiledProduct(66, 4096, 64), StreamKChoice(132, streamed=66), 0),  # halves of tiles: two positions of K
        (TiledProduct(144, 4096, 64), StreamKChoice(132, streamed=144), 1),  # shares end anywhere
        (
            TiledProduct(144, 4096, 64),
            StreamKChoice(66, streamed=144),
            0.29,
        ),  # and half of the work-groups fetch half as much
        (TiledProduct(144, 32, 64), StreamKChoice(132, streamed=144), 0),  # of operands that the cache holds
        (TiledProduct(144, 512, 64), StreamKChoice(132, streamed=144), 1),
        (
            TiledProduct(144, 64, 64),
            StreamKChoice(132, streamed=144),
            0.25,
        ),  # 0.6 of the cache are a column's: some of it is lost
        (TiledProduct(276, 4096, 64), StreamKChoice(132, streamed=12), 1 / 23),  # a share of 1/11, and two whole tiles
        (TiledProduct(66, 4096, 64), StreamKChoice(132, splits=2), 0),  # one turn
        (
            TiledProduct(264, 4096, 64),
            StreamKChoice(132, splits=4),
            0.58,
        ),  # eight turns: of 33 keep eight in step, in a column
        (TiledProduct(264, 4096, 64, block=2), StreamKChoice(132, splits=4), 0.17),  # two columns of four
        (TiledProduct(264, 4096, 64, block=4), StreamKChoice(132, splits=4), 0.05),  # and four of two
        (
            TiledProduct(132, 4096, 64, down=1, block=4),
            StreamKChoice(132),
            0.05,
        ),  # one row of blocks is one row of tiles
        (
            TiledProduct(264, 4096, 64, batch=22, down=12, block=4),
            StreamKChoice(132, splits=4),
            0.58,
        ),  # a column for each matrix
    ],
)
def test_work_groups_that_find_nothing_in_the_cache_wait_for_memory(work, choice, waits):
    """`waits` is a share of the iterations of the work-group that has most."""
    schedule = StreamKSchedule(work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
    seconds = Scan(only("misaligned"), CACHED).seconds(work, choice)
    assert seconds == pytest.approx(waits * schedule.busiest, abs=0.01 * schedule.busiest)


@pytest.mark.parametrize(
    ("work", "choice", "apart"),
    [
        (TiledProduct(264, 4096, 64), StreamKChoice(132, splits=4), 1),
        (TiledProduct(33, 4096, 64), StreamKChoice(132, splits=4), 0),  # one turn
        (TiledProduct(264, 16, 64), StreamKChoice(132, splits=4), 0),  # of operands that the cache holds
        (
            TiledProduct(264, 32, 64),
            StreamKChoice(132, splits=4),
            0.12,
        ),  # of which it holds most, so that nobody waits for memory
        (TiledProduct(264, 4096, 64), StreamKChoice(132), 0),
        (TiledProduct(144, 4096, 64), StreamKChoice(132, streamed=144), 0),
    ],
)
def test_parts_of_k_lose_step_in_several_turns(work, choice, apart):
    scan = Scan(only("apart"), CACHED)
    schedule = StreamKSchedule(work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
    assert scan.seconds(work, choice) == pytest.approx(apart * schedule.busiest, abs=0.005 * schedule.busiest)
    assert scan.splits(work)[SPLITS.index(4)][1] == scan.seconds(work, StreamKChoice.split_k(work, CACHED, 4))


def test_split_k_collects_in_every_turn():
    """264 tiles in 4 parts on 132 work-groups are 8 turns; in each turn a work-group waits for three others."""
    assert Scan(only("peer"), H200).seconds(TiledProduct(264, 64, 64), StreamKChoice(132, splits=4)) == 8 * 3
    assert Scan(only("partial"), H200).seconds(TiledProduct(264, 64, 64), StreamKChoice(132, splits=4)) == 8


def test_equals_go_to_what_splits_less():
    """If only iterations cost, 132 tiles on 132 work-groups are equally fast however they are cut."""
    assert Scan(only("iteration"), H200).best(TiledProduct(132, 16, 64))[0] == StreamKChoice(132)


@pytest.mark.parametrize(
    ("cost", "iterations", "grid"),
    [
        ("iteration", 64, 132),  # at most 65 iterations, on 131 work-groups too
        ("busy", 64, 132),  # 65 x 132 are 0.8 % more than 76 x 112, the least there is
        ("busy", 15, 125),  # 16 x 125 are 0.3 % more than 19 x 105, 16 x 126 are 1.05 %
    ],
)
def test_of_grids_as_good_the_largest_is_taken(cost, iterations, grid):
    assert Scan(only(cost), H200).best(TiledProduct(133, iterations, 64))[0].grid == grid


@given(work=works, room=rooms, seed=st.integers(0, 99))
def test_no_candidate_is_faster_than_the_best(work, room, seed):
    scan = Scan(np.random.default_rng(seed).random(len(COSTS)), room)
    seconds = scan.best(work)[1]
    assert all(seconds <= candidate * (1 + 1e-9) for _, candidate in (*scan.candidates(work), *scan.splits(work)))


@pytest.mark.parametrize("groups", [1, 2, 10])
def test_full_waves_that_a_person_asks_for_may_be_on_every_grid(groups):
    """If only iterations cost, a work-group more is always faster, up to the last."""
    scan, work = Scan(only("iteration"), DeviceCapacity(groups)), TiledProduct(groups + 1, 630, 64)
    choice, seconds = scan.best_on(work, None, 1)
    assert choice == row_on(work, groups, 2)
    assert seconds == scan.seconds(work, choice) == -(-work.tiles * 630 // groups)


# --- the fit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "room",
    [H200, CACHED, DeviceCapacity(132, 2), DeviceCapacity(108), DeviceCapacity(64), MI300X, DeviceCapacity(2)],
    ids=str,
)
def test_a_fit_finds_the_costs_that_made_the_runs(room):
    """The runs have 1 % of noise, and one run was disturbed."""
    runs = runs_on(room, noise=0.01)
    runs[5] = StreamKRun(runs[5].work, runs[5].choice, 3 * runs[5].seconds)
    costs, _, scatter = fit(runs, room, np.random.default_rng(0))
    fitted, low, high = np.array([(cost.fitted, cost.low, cost.high) for cost in costs]).T
    features = np.array([counts(run.work, run.choice, room) for run in runs])
    assert features @ fitted == pytest.approx(features @ COSTLY, rel=0.03)
    assert scatter < 0.02
    told_apart = features.any(axis=0) & (high < 2 * np.maximum(fitted, 1e-12))
    assert told_apart.sum() >= 6
    assert told_apart[MISALIGNED] == told_apart[APART] == (room is CACHED)
    np.testing.assert_array_less(low[told_apart] * 0.95, COSTLY[told_apart])
    np.testing.assert_array_less(COSTLY[told_apart], high[told_apart] * 1.05)


@pytest.mark.parametrize("room", [H200, DeviceCapacity(132, 2), MI300X], ids=str)
def test_about_forty_runs_of_whole_tiles(room):
    runs = calibration_runs(room, MacroTile(128, 128, 64, block=4), SPLITS)
    assert {work.block for work, _ in runs} == {4}
    assert 30 <= len(runs) <= 45
    assert len(set(runs)) == len(runs)
    assert max(choice.grid for _, choice in runs) <= room.groups
    assert max(work.k for work, _ in calibration_runs(room, MacroTile(64, 64, 8), SPLITS)) == max(
        work.k for work, _ in runs
    )


def test_split_k_is_measured_if_the_kernel_has_it():
    tile = MacroTile(256, 128, 64)
    for occupancy in (1, 2, 8):
        room = replace(CACHED, occupancy=occupancy)
        without, runs = calibration_runs(room, tile, ()), calibration_runs(room, tile, SPLITS)
        split = [run for run in runs if run[1].splits > 1]
        assert [run for run in runs if run not in without] == split
        assert [choice.splits for _, choice in split] == [2, 4]
        assert all(work.tiles / choice.grid == pytest.approx(4, rel=0.05) for work, choice in split)


def test_costs_are_not_negative_whatever_the_runs_say():
    random = np.random.default_rng(3)
    runs = [StreamKRun(run.work, run.choice, float(random.uniform(1e-6, 1e-3))) for run in runs_on(H200)]
    costs, *_ = fit(runs, H200, random, resamples=10)
    assert all(0 <= cost.low <= cost.fitted <= cost.high for cost in costs)


def test_too_few_runs_are_no_fit():
    with pytest.raises(ValueError, match="9 costs cannot be fitted to 7 runs"):
        fit(runs_on(H200)[:7], H200, np.random.default_rng(0))


def test_an_interval_covers_about_95_percent_of_new_runs():
    model, random = CalibratedModel(calibration(H200, noise=0.02)), np.random.default_rng(7)
    inside, planned = 0, calibration_runs(H200, MacroTile(128, 128, 32), SPLITS)
    for work, choice in planned:
        seconds, (low, high) = model.expect(work, choice)
        measured = float(counts(work, choice, H200) @ COSTLY) * (1 + 0.02 * random.standard_normal())
        assert low < seconds < high
        inside += low <= measured <= high
    assert inside >= 0.85 * len(planned)


@pytest.mark.parametrize(("tiles", "side"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (12, 3), (13, 1), (36, 6)])
def test_the_squarest_rectangle_of_tiles_has_the_longest_shorter_side(tiles, side):
    assert squarest(tiles) == side


@pytest.mark.parametrize("room", [DeviceCapacity(8), DeviceCapacity(132, 2)], ids=str)
def test_the_runs_of_a_calibration_have_whole_waves_and_remainders_alone(room):
    planned, grid = calibration_runs(room, MacroTile(128, 128, 32), (2, 4)), room.multiprocessors
    whole = {work.tiles for work, choice in planned if choice.grid == grid and not choice.streamed}
    assert {2 * grid, 4 * grid} <= whole
    alone = {work.tiles for work, choice in planned if choice.grid == grid and choice.streamed == work.tiles < grid}
    assert {grid // 2 + 1, grid - 1} <= alone
