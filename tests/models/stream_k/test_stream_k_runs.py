"""The runs of a calibration: what each kind of run is, worked out by hand."""

from __future__ import annotations

import pytest

from tunesmith.models.stream_k.costs import SPLITS
from tunesmith.models.stream_k.decision_models import DeviceCapacity, MacroTile, calibration_runs
from tunesmith.models.stream_k.runs import DEEPEST, PARTS, SHARED, SKEWED, WHOLE

TILE = MacroTile(128, 128, 64)
CACHED = DeviceCapacity(12, 1, (40, 90))


def planned(room, tile=TILE, splits=SPLITS):
    """Tiles, iterations, grid, streamed tiles and parts of K of every run."""
    return {
        (work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
        for work, choice in calibration_runs(room, tile, splits)
    }


def whole(room):
    return {(tiles, iterations, grid) for tiles, iterations, grid, streamed, splits in planned(room) if not streamed}


def overlapping(room):
    """Runs with more tiles than work-groups, all of them cut: a wave and a remainder."""
    return {
        (grid, tiles - grid, iterations)
        for tiles, iterations, grid, streamed, _ in planned(room)
        if streamed == tiles > grid and tiles not in (grid // parts for parts in PARTS)
    }


@pytest.mark.parametrize(("room", "half"), [(DeviceCapacity(8, 3), 4), (DeviceCapacity(9), 4), (DeviceCapacity(1), 1)])
def test_whole_tiles_run_alone_on_half_and_on_all_multiprocessors_in_full_and_in_turns(room, half):
    wave = room.multiprocessors
    single = {(grid, iterations, grid) for grid in (1, wave, room.groups) for iterations in WHOLE}
    halves = {(half, iterations, half) for iterations in SKEWED}
    in_turn = {(turns * wave, iterations, wave) for turns in (2, 4) for iterations in (4, 64)}
    assert whole(room) == single | halves | in_turn


@pytest.mark.parametrize("wave", [1, 5, 8, 132])
def test_tiles_are_cut_into_equal_parts_that_fill_a_wave_at_most(wave):
    cut = planned(DeviceCapacity(wave))
    for parts in PARTS:
        tiles = wave // parts or 1
        assert {(tiles, iterations, tiles * parts, tiles, 1) for iterations in SHARED} <= cut


@pytest.mark.parametrize(
    ("room", "remainders", "fewer"),
    [
        (DeviceCapacity(9), {1, 4, 8}, {5, 8}),
        (DeviceCapacity(8), {1, 4, 7}, {5, 7}),
        (DeviceCapacity(3), {1, 2}, {2}),
        (DeviceCapacity(2), {1}, {1}),
        (DeviceCapacity(1), {1}, set()),
    ],
)
def test_shares_extend_over_tiles_beyond_a_wave_and_in_less_than_a_wave(room, remainders, fewer):
    """The remainder is one tile, half of a wave, or all but one tile; less than a wave is half and one, or all but
    one."""
    wave = room.multiprocessors
    assert overlapping(room) == {(wave, tiles, iterations) for tiles in remainders for iterations in SKEWED}
    deep = {
        tiles
        for tiles, iterations, grid, streamed, _ in planned(room)
        if iterations == SKEWED[-1] and grid == wave and streamed == tiles < wave
    }
    assert deep == fewer


def test_where_several_work_groups_fit_a_wave_and_a_half_of_all_of_them_is_run():
    """9 multiprocessors hold 27 work-groups; half of 27 tiles are 13."""
    alone, several = (overlapping(DeviceCapacity(9, occupancy)) for occupancy in (1, 3))
    assert several - alone == {(27, 13, iterations) for iterations in SKEWED}
    assert alone <= several


def test_operands_beyond_the_cache_are_two_and_four_times_as_large():
    """Of 12 work-groups, squares of 2 x 3 and 4 x 5 tiles, and for split-K one of 6 x 7. The cache holds 40 pieces of A
    or 90 of B, so that 2 tiles along both fill it twice in 28 iterations: 2 * 28 / 40 + 2 * 28 / 90 = 2.02. One more
    iteration is run."""
    beyond = {(6, 29, 12, 6, 1), (20, 15, 12, 20, 1), (20, 15, 12, 0, 1)}
    beyond |= {(6, 57, 12, 6, 1), (20, 29, 12, 20, 1), (20, 29, 12, 0, 1)}
    in_parts = {(42, 57, 12, 0, 2), (42, 57, 12, 0, 4)}
    cached = planned(DeviceCapacity(12))
    assert planned(CACHED) - cached == beyond | in_parts
    assert planned(CACHED, splits=(3, 4)) - cached == beyond | {(42, 57, 12, 0, 4)}
    assert planned(DeviceCapacity(12, 1, (40, 0))) == planned(DeviceCapacity(12, 1, (0, 90))) == cached


@pytest.mark.parametrize(("wave", "third", "more", "four"), [(12, 6, 20, 42), (18, 6, 30, 72), (132, 42, 210, 506)])
def test_operands_beyond_the_cache_are_those_of_squares_with_one_more_tile_along_n(wave, third, more, four):
    """Of 132 work-groups a third are 44, for 6 x 7 tiles; one and a half times as many are 198, for 14 x 15; and four
    times as many are 528, for 22 x 23."""
    beyond = planned(DeviceCapacity(wave, 1, (40, 90))) - planned(DeviceCapacity(wave))
    assert {(tiles, splits) for tiles, _, _, _, splits in beyond} == {(third, 1), (more, 1), (four, 2), (four, 4)}


def test_a_device_with_one_work_group_has_squares_too():
    beyond = planned(DeviceCapacity(1, 1, (40, 90)), splits=(2,)) - planned(DeviceCapacity(1))
    assert {(tiles, grid, splits) for tiles, _, grid, _, splits in beyond} == {(2, 1, 1), (6, 1, 2)}


@pytest.mark.parametrize(("depth", "factor"), [(128, 1), (64, 1), (33, 1), (32, 2), (8, 8)])
def test_shallow_tiles_have_more_iterations_as_long_as_they_fit_the_cache(depth, factor):
    """What goes beyond the cache is as long as the cache says."""
    usual = planned(DeviceCapacity(12))
    multiplied = {(tiles, iterations * factor, *choice) for tiles, iterations, *choice in usual}
    shallow = MacroTile(128, 128, depth)
    assert planned(DeviceCapacity(12), shallow) == multiplied
    assert planned(CACHED, shallow) == multiplied | (planned(CACHED) - usual)


def test_no_run_is_deeper_than_any_product():
    huge = DeviceCapacity(12, 1, (10**6, 10**6))
    assert max(iterations for _, iterations, *_ in planned(huge)) == DEEPEST // 64
