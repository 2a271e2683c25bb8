"""Stream-K's schedule: every iteration of every tile exactly once, sums added in order. No device needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_k_tables import NO_SLOT, loads, peers, segments
from tunesmith.kernels.gemm.stream_k import StreamKSchedule, iterations_of, streamed_tiles

small = {"tiles": st.integers(0, 60), "iterations": st.integers(1, 24), "grid": st.integers(1, 50)}


def times_computed(schedule):
    """How often each iteration of each tile is computed."""
    counts = np.zeros((schedule.tiles, schedule.iterations), int)
    for group in range(schedule.grid):
        for segment in schedule.segments(group):
            counts[segment.tile, segment.begin : segment.end] += 1
    return counts


def stream_k_first(tiles, iterations, grid, full_tiles):
    """Tensile's other two-tile order (`StreamK: 2`), as its kernels have it: the share first, then data-parallel tiles.

    A work-group without a share starts in the data-parallel part, at its first tile, instead of skipping to its own.
    Returns how often each iteration is computed, in whole tiles for the data-parallel part.
    """
    streamed = grid if tiles % grid == 0 else min(tiles % grid + grid * full_tiles, tiles)
    total = streamed * iterations
    per, extra = divmod(total, grid)
    counts = np.zeros((tiles, iterations), int)
    for group in range(grid):
        start = group * per + min(group, extra)
        stop = start + per + (group < extra)
        for at in range(start, stop):
            counts[divmod(at, iterations)] += 1
        own = streamed + group if start < stop else streamed
        for tile in range(own, tiles, grid):
            counts[tile] += 1
    return counts


# --- the parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("full_tiles", "streamed", "per_group", "extra"), [(0, 1, 0, 64), (1, 101, 64, 64), (2, 201, 128, 64)]
)
def test_the_worked_example(full_tiles, streamed, per_group, extra):
    """1001 tiles of 64 iterations on 100 work-groups: the one tile alone gives 64 of them one iteration each; with a
    full wave, each has a tile's worth and 64 have one iteration more."""
    schedule = StreamKSchedule.two_tile(1001, 64, 100, full_tiles)
    assert (schedule.streamed, schedule.per_group, schedule.extra) == (streamed, per_group, extra)
    assert (times_computed(schedule) == 1).all()
    assert loads(schedule).iterations.sum() == 1001 * 64
    waves = (1001 - streamed) // 100 * 64
    assert set(loads(schedule).iterations) == {waves + per_group, waves + per_group + 1}


@pytest.mark.parametrize(
    ("tiles", "grid", "full_tiles", "streamed"),
    [
        (1001, 100, 0, 1),
        (1001, 100, 1, 101),
        (1000, 100, 0, 0),
        (1000, 100, 1, 100),
        (7, 100, 0, 7),
        (7, 100, 3, 7),
        (1001, 100, -1, 0),
        (7, 100, -1, 0),
    ],
)
def test_streamed_tiles_are_the_remainder_and_full_waves(tiles, grid, full_tiles, streamed):
    assert streamed_tiles(tiles, grid, full_tiles) == streamed


def test_a_sum_over_nothing_still_takes_an_iteration():
    """Somebody has to write beta C."""
    assert [iterations_of(k, 16) for k in (0, 1, 16, 17)] == [1, 1, 1, 2]


@pytest.mark.parametrize("wrong", [{"grid": 0}, {"iterations": 0}, {"streamed": 11}, {"streamed": 1, "splits": 2}])
def test_what_is_no_schedule_is_refused(wrong):
    with pytest.raises(ValueError, match="no schedule"):
        StreamKSchedule(**{"tiles": 10, "iterations": 4, "grid": 4} | wrong)


# --- everything once ------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(**small, full_tiles=st.integers(0, 3))
def test_every_iteration_is_computed_once(tiles, iterations, grid, full_tiles):
    assert (times_computed(StreamKSchedule.two_tile(tiles, iterations, grid, full_tiles)) == 1).all()


@settings(deadline=None)
@given(**small, part=st.floats(0, 1))
def test_every_iteration_is_computed_once_whatever_number_of_tiles_is_streamed(tiles, iterations, grid, part):
    assert (times_computed(StreamKSchedule(tiles, iterations, grid, round(part * tiles))) == 1).all()


@settings(deadline=None)
@given(**small, splits=st.integers(1, 30))
def test_every_iteration_is_computed_once_with_split_k(tiles, iterations, grid, splits):
    """Some parts have nothing when there are more of them than iterations."""
    assert (times_computed(StreamKSchedule(tiles, iterations, grid, splits=splits)) == 1).all()


@settings(deadline=None)
@given(
    per_matrix=st.integers(1, 12),
    batch=st.integers(1, 6),
    iterations=st.integers(1, 16),
    grid=st.integers(1, 50),
    full_tiles=st.integers(0, 2),
)
def test_a_batch_is_more_tiles(per_matrix, batch, iterations, grid, full_tiles):
    """Shares run on from one matrix to the next; each tile of each matrix is computed once."""
    counts = times_computed(StreamKSchedule.two_tile(per_matrix * batch, iterations, grid, full_tiles))
    assert (counts.reshape(batch, per_matrix, iterations) == 1).all()


def test_the_originals_hole_is_not_here():
    """111 tiles of 16 iterations on 110 work-groups, remainder only: 94 work-groups have no share."""
    theirs, ours = stream_k_first(111, 16, 110, 0), times_computed(StreamKSchedule.two_tile(111, 16, 110, 0))
    assert (theirs == 0).sum() == 1504
    assert (theirs - 1).clip(0).sum() == 1504
    assert (ours == 1).all()
    assert (stream_k_first(111, 16, 110, 1) == 1).all()


@settings(deadline=None)
@given(tiles=st.integers(2, 60), iterations=st.integers(1, 24), grid=st.integers(2, 50), full_tiles=st.integers(0, 2))
def test_the_originals_hole_is_where_work_groups_have_no_share(tiles, iterations, grid, full_tiles):
    """Evidence that the restatement above is the original's: it is wrong just where its text says it is."""
    streamed = grid if tiles % grid == 0 else min(tiles % grid + grid * full_tiles, tiles)
    idle = grid - streamed * iterations
    counts = stream_k_first(tiles, iterations, grid, full_tiles)
    assert (counts == 1).all() == (not (idle > 0 and streamed < tiles))


# --- who adds what --------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(**small, part=st.floats(0, 1))
def test_a_tiles_sums_come_from_neighbours_in_the_order_of_k(tiles, iterations, grid, part):
    schedule = StreamKSchedule(tiles, iterations, grid, round(part * tiles))
    ends = {}
    for group in range(grid):
        for segment in schedule.segments(group):
            assert segment.begin == ends.get(segment.tile, (0, 0))[0], "later work-groups have later iterations"
            ends[segment.tile] = (segment.end, group)
            if segment.tile >= schedule.alone:
                assert group in schedule.groups_on(segment.tile)
                assert (segment.slot is None) == (len(schedule.groups_on(segment.tile)) == 1)
                if segment.begin == 0:
                    assert schedule.groups_on(segment.tile)[0] == group, "the owner begins the tile"


@settings(deadline=None)
@given(**small, part=st.floats(0, 1), splits=st.integers(1, 9))
def test_no_two_sums_share_a_place(tiles, iterations, grid, part, splits):
    schedule = StreamKSchedule(tiles, iterations, grid, round(part * tiles) if splits == 1 else 0, splits)
    used = [segment.slot for group in range(grid) for segment in schedule.segments(group) if segment.slot is not None]
    assert len(used) == len(set(used))
    assert not used or max(used) < schedule.slots
    assert bool(used) == (schedule.shared and tiles > 0)


@settings(deadline=None)
@given(**small, part=st.floats(0, 1))
def test_work_groups_differ_by_a_tile_and_an_iteration_at_most(tiles, iterations, grid, part):
    schedule = StreamKSchedule(tiles, iterations, grid, round(part * tiles))
    shares = [schedule.start(group + 1) - schedule.start(group) for group in range(grid)]
    assert max(shares) - min(shares) <= 1
    assert shares == sorted(shares, reverse=True), "the first ones take one more"


# --- all at once ----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(**small, part=st.floats(0, 1), splits=st.integers(1, 9))
def test_the_table_is_the_scalar_form(tiles, iterations, grid, part, splits):
    schedule = StreamKSchedule(tiles, iterations, grid, round(part * tiles) if splits == 1 else 0, splits)
    table = segments(schedule)
    columns = (table.group, table.tile, table.begin, table.end, table.slot)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (group, segment.tile, segment.begin, segment.end, NO_SLOT if segment.slot is None else segment.slot)
        for group in range(grid)
        for segment in schedule.segments(group)
    ]


@settings(deadline=None)
@given(**small, part=st.floats(0, 1))
def test_the_first_work_group_is_the_busiest(tiles, iterations, grid, part):
    schedule = StreamKSchedule(tiles, iterations, grid, round(part * tiles))
    assert loads(schedule).iterations.max() == loads(schedule).iterations[0] == schedule.busiest


@settings(deadline=None)
@given(**small, part=st.floats(0, 1))
def test_peers_are_those_who_meet(tiles, iterations, grid, part):
    schedule = StreamKSchedule(tiles, iterations, grid, round(part * tiles))
    met = [len(schedule.groups_on(tile)) for tile in range(schedule.alone, tiles)]
    assert peers(schedule).tolist() == [1] * schedule.alone + met


def test_numbers_beyond_32_bits():
    """Two million tiles of five thousand iterations: 10^10 of them."""
    schedule = StreamKSchedule(2_000_003, 5_000, 264, 2_000_003)
    assert schedule.start(264) == 10_000_015_000
    assert schedule.groups_on(2_000_002)[-1] == 263
