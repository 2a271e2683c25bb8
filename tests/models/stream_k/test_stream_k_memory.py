"""What work-groups request from memory, and when they wait for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_k_fakes import COSTLY, H200, rooms, works
from tunesmith.models.stream_k.costs import SPLITS, Scan
from tunesmith.models.stream_k.decision_models import DeviceCapacity, TiledProduct
from tunesmith.models.stream_k.memory_demand import GONE, HIDDEN, KEPT, MemoryDemand

STEPS = [
    # First fetches, by half of the multiprocessors.
    ((0.6, 0.0, 0.0, 1, 1, 100), 50, True),
    ((0.6, 0.0, 0.0, 1, 1, 100), 51, False),
    ((0.3, 0.0, 0.0, 1, 1, 100), 1000, True),
    # Pieces of A, requested once for each of 50 rows.
    ((0.0, 0.6, 0.0, 50, 1, 100), 1000, True),
    ((0.0, 0.6, 0.0, 51, 1, 100), 1000, False),
    # Pieces of B, requested once for each column: two rows share one, and a block has as many columns as it is wide.
    ((0.0, 0.0, 0.6, 2, 1, 100), 1000, True),
    ((0.0, 0.0, 0.6, 1, 1, 100), 1000, False),
    ((0.0, 0.0, 0.6, 12, 50, 100), 1000, True),
    ((0.0, 0.0, 0.6, 12, 51, 100), 1000, False),
    # All of them.
    ((0.09, 0.2, 0.2, 50, 50, 100), 1000, True),
    ((0.11, 0.2, 0.2, 50, 50, 100), 1000, False),
    ((0.09, 0.23, 0.2, 50, 50, 100), 1000, False),
    ((0.09, 0.2, 0.23, 50, 50, 100), 1000, False),
]
"""Demands, tiles, and whether work-groups in step keep up: whether they request no more than HIDDEN."""


@pytest.mark.parametrize(("demand", "tiles", "keep_up"), STEPS)
def test_work_groups_in_step_keep_up_with_what_arithmetic_hides(demand, tiles, keep_up):
    assert HIDDEN == 0.3
    assert MemoryDemand(*demand).keeps_up_in_step(tiles) is keep_up


@settings(deadline=None)
@given(work=works, room=rooms)
def test_work_groups_that_keep_up_never_wait(work, room):
    memory = MemoryDemand.of(work, room)
    for busy in range(1, room.groups + 1):
        if memory.keeps_up:
            assert memory.waiting(busy, 1) == 0
        if memory.keeps_up_in_step(work.tiles) and busy <= work.tiles:
            assert memory.waiting(busy, busy) <= 1e-12


@settings(deadline=None)
@given(work=works, room=rooms, cost=st.floats(0.1, 10))
def test_the_cost_of_waiting_on_many_grids_is_that_on_each(work, room, cost):
    memory = MemoryDemand.of(work, room)
    grids = np.arange(1, room.groups + 1)
    busy, together = np.minimum(1.0, grids / room.multiprocessors), np.minimum(grids, work.tiles)
    in_step = [cost * memory.waiting(int(grid), min(int(grid), work.tiles)) for grid in grids]
    assert memory.cost_in_step(cost, busy, together) == pytest.approx(in_step)
    assert memory.cost_alone(cost, busy) == pytest.approx([cost * memory.waiting(int(grid), 1) for grid in grids])


@pytest.mark.parametrize(
    ("iterations", "again"),
    [(30, 0.0), (65, 0.5), (100, 1.0), (200, 1.0)],
)
def test_a_piece_has_left_the_cache_after_as_much_as_the_cache_holds_was_fetched(iterations, again):
    """A cache of 200 pieces of A or B, one tile: in 30 iterations three tenths of it are fetched, in 100 all of it."""
    memory = MemoryDemand.of(TiledProduct(1, iterations, 64), DeviceCapacity(1, 1, (200, 200)))
    assert (KEPT, GONE) == (0.3, 1.0)
    assert memory.again == pytest.approx(again)
    assert memory.alone == pytest.approx(1.0), "one tile shares no piece"


def test_a_row_shares_pieces_of_a_and_a_column_those_of_b():
    """The cache holds 300 pieces of A or 600 of B, so that a piece of A is twice one of B. 2 x 3 tiles of 60
    iterations: a column of two tiles is 0.6 of the cache, and a row of three 0.9."""
    memory = MemoryDemand.of(TiledProduct(6, 60, 64, down=2, block=4), DeviceCapacity(10, 1, (300, 600)))
    again_of_a, again_of_b = 2 / 3 * 3 / 7, 1 / 3 * 6 / 7
    assert memory.again_of_a == pytest.approx(again_of_a)
    assert memory.again_of_b == pytest.approx(again_of_b)
    assert memory.first == pytest.approx((2 / 3 - again_of_a) / 3 + (1 / 3 - again_of_b) / 2)
    assert (memory.rows, memory.block, memory.units) == (2, 3, 10), "a block is no wider than a row"


def test_the_matrices_of_a_batch_are_columns_whose_blocks_end_with_them():
    memory = MemoryDemand.of(TiledProduct(40, 60, 64, batch=4, down=2, block=8), DeviceCapacity(10, 1, (300, 600)))
    assert memory.block == 5


@pytest.mark.parametrize("cached", [(0, 0), (0, 600), (300, 0)])
def test_nobody_waits_where_the_cache_is_not_known_or_nothing_is_to_do(cached):
    unknown = MemoryDemand.of(TiledProduct(6, 60, 64), DeviceCapacity(10, 1, cached))
    idle = MemoryDemand.of(TiledProduct(0, 60, 64), DeviceCapacity(10, 1, (300, 600)))
    for memory in (unknown, idle):
        assert memory.alone == 0
        assert memory.waiting(10, 1) == 0


@pytest.mark.parametrize("iterations", [2, 3, 5, 64])
def test_parts_of_k_that_cannot_be_faster_are_left_out(iterations):
    """There are no more parts than iterations, and only such that take less than is asked for."""
    work, scan = TiledProduct(40, iterations, 64), Scan(COSTLY, H200)
    every = scan.splits(work)
    assert [choice.splits for choice, _ in every] == [parts for parts in SPLITS if parts <= iterations]
    for _, seconds in every:
        assert scan.splits(work, seconds) == [faster for faster in every if faster[1] < seconds]
