"""The launches of a product that a sweep compares: predicted ones, and searched ones, which do not depend on
predictions."""

from __future__ import annotations

import pytest

from stream_k_fakes import calibration
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    DeviceCapacity,
    PortableModel,
    StreamKChoice,
    TensileModel,
    TiledProduct,
)
from tunesmith.session.stream_k.choices import EVEN, as_launched, log_spaced, neighbours_of_best, sweep_of

ROOM = DeviceCapacity(132)
DEPTH = 64


@pytest.mark.parametrize(("most", "count"), [(132, 24), (20, 24), (1, 24), (264, 5), (2, 1)])
def test_grids_are_as_many_as_asked_for_and_reach_both_ends(most, count):
    grids = log_spaced(most, count)
    assert len(grids) == min(most, count)
    assert grids == sorted(set(grids))
    assert grids[0] == 1
    assert grids[-1] == most or count == 1


def tried_of(work, room, *predicted, grids=24, parts=(), capped=False):
    """All choices that a sweep tries at first."""
    from_models, searched = sweep_of(work, room, predicted, grids=grids, parts=parts, capped=capped)
    return list(dict.fromkeys([*from_models, *searched]))


def test_every_number_of_split_tiles_is_tried_on_every_grid():
    work = TiledProduct(140, 64, DEPTH)
    tried = tried_of(work, ROOM, StreamKChoice(132), parts=(2, 4))
    for grid in log_spaced(132, 24):
        if 140 % grid and grid > 20:
            assert {StreamKChoice(grid, 140 % grid), StreamKChoice(grid, 140 % grid + grid)} <= set(tried)
    assert {choice.splits for choice in tried} == {1, 2, 4}
    assert len(tried) == len(set(tried))


@pytest.mark.parametrize(
    "work", [TiledProduct(140, 64, DEPTH), TiledProduct(27, 1024, DEPTH), TiledProduct(1, 512, DEPTH)]
)
def test_what_is_searched_does_not_depend_on_what_was_predicted(work):
    """If it did, more would be tried near our own choice, and the best that is found would lie there."""
    predictions = (StreamKChoice(132), StreamKChoice(97, work.tiles % 97), StreamKChoice(108, splits=4))
    searched = [sweep_of(work, ROOM, [choice], grids=24, parts=(2, 4), capped=False)[1] for choice in predictions]
    assert searched[0] == searched[1] == searched[2] != []


def test_grids_that_cut_every_tile_evenly_are_searched():
    _, searched = sweep_of(TiledProduct(27, 1024, DEPTH), ROOM, [], grids=24, parts=(), capped=False)
    assert {StreamKChoice(27 * parts, 27) for parts in EVEN if 1 < parts <= 132 // 27} <= set(searched)


def test_what_is_next_to_the_best_that_was_searched_is_tried_after_it():
    work = TiledProduct(140, 64, DEPTH)
    grids = [grid for grid in log_spaced(132, 24) if grid < 132]
    grid = grids[-1]
    below = max(other for other in log_spaced(132, 24) if other < grid)

    def neighbours(best, parts=()):
        return list(neighbours_of_best(work, best, ROOM, grids=24, parts=parts, capped=False))

    near = {choice.grid for choice in neighbours(StreamKChoice(grid, 140 - grid))}
    halfway = {round((grid * other) ** 0.5) for other in (below, 132)}
    assert near - {132} == ({grid - 1, grid + 1} | halfway) - {grid, 132}, "132 stands for whole tiles"
    assert {choice.splits for choice in neighbours(StreamKChoice(132, splits=4), parts=(2, 4))} == {3, 5}
    assert not neighbours(StreamKChoice(132)), "whole tiles have no neighbour"


def test_whole_tiles_are_one_launch_unless_grids_are_capped():
    work = TiledProduct(140, 64, DEPTH)
    free = tried_of(work, ROOM, StreamKChoice(132))
    assert [choice for choice in free if not choice.streamed] == [StreamKChoice(132)]
    capped = tried_of(work, DeviceCapacity(64), StreamKChoice(64), capped=True)
    assert len([choice for choice in capped if not choice.streamed]) > 5
    assert max(choice.grid for choice in capped) == 64


def test_what_has_no_chance_is_left_out_unless_it_was_predicted():
    work = TiledProduct(1000, 64, DEPTH)
    tried = tried_of(work, ROOM, StreamKChoice(132, 76))
    assert min(choice.grid for choice in tried if choice.streamed) > 5
    assert StreamKChoice(3, 1) in tried_of(work, ROOM, StreamKChoice(3, 1))


def test_what_is_compared_is_always_tried():
    models = (PortableModel(ROOM), TensileModel(ROOM), CalibratedModel(calibration(ROOM)))
    for tiles in (1, 2, 131, 133, 264, 5000):
        for iterations in (1, 2, 1024):
            work = TiledProduct(tiles, iterations, DEPTH)
            for model in models:
                choice = model.choose(work)
                tried = tried_of(work, ROOM, choice, grids=4, parts=(2, 4))
                assert as_launched(work, choice, ROOM, False) in tried
                assert StreamKChoice.whole_tiles(work, ROOM) in tried
                assert iterations < 4 or {2, 4} <= {choice.splits for choice in tried}
