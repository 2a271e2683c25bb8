"""Batches that are parts of a whole are reported as the whole."""

from __future__ import annotations

from tunesmith.session.frame.events import BatchBegan, BatchMerger, Message


def merged(cells, *parts):
    """What an observer is told of parts that found so many cells in the store."""
    observed = []
    merger = BatchMerger(observed.append)
    with merger.together(BatchBegan("all", cells, 0)):
        for reused in parts:
            merger(BatchBegan("a part", 9, reused))
    merger(BatchBegan("later", 3, 1))
    return observed


def test_parts_become_the_whole_with_all_that_was_done():
    announced = merged(16, 4, 0, 12)
    assert announced == [*(BatchBegan("all", 16, done) for done in (0, 4, 16)), BatchBegan("later", 3, 1)]


def test_a_whole_grows_if_more_is_done_than_was_announced():
    assert merged(16, 12, 8)[1:3] == [BatchBegan("all", 16, 12), BatchBegan("all", 20, 20)]


def test_other_events_are_passed_on():
    observed = []
    merger = BatchMerger(observed.append)
    with merger.together(BatchBegan("all", 2, 0)):
        merger(Message("a sentence"))
    assert observed[1:] == [Message("a sentence")]
