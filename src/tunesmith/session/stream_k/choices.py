"""Which launches of a product a sweep tries, and which of them are one and the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from tunesmith.models.stream_k import Choice, Decision, Room, Work, choices_on

GRIDS = 24
SPLITS = (2, 4, 8, 16)

FUTILE = 10.0
"""Times the fewest iterations that a work-group may have, which no other cost of a launch makes up for."""


def as_launched(work: Work, choice: Choice, room: Room, capped: bool) -> Choice:
    """The choice that stands for all that are launched alike, in the words of the models.

    Whole tiles are launched with a work-group each, so that any grid means the same, unless grids are `capped`. With
    split-K, every part has a work-group.
    """
    if choice.splits > 1:
        return Choice.split_k(work, room, choice.splits)
    return choice if choice.streamed or capped else Choice.whole_tiles(work, room)


def split_k(work: Work, room: Room, parts: Collection[int]) -> list[Choice]:
    """A choice for each number of parts that K has iterations for."""
    return [Choice.split_k(work, room, number) for number in parts if number <= work.iterations]


def sweep_of(
    work: Work,
    room: Room,
    predicted: Choice,
    others: Iterable[Choice] = (),
    *,
    grids: int,
    parts: Collection[int],
    capped: bool,
) -> list[Choice]:
    """What is compared: what was predicted, by `others` too, whole tiles and split-K; then what is next to the
    prediction, and `grids` grids with every number of split tiles that makes sense, unless it has no chance. Each once.
    """
    compared = [predicted, *others, Choice.whole_tiles(work, room), *split_k(work, room, parts)]
    asked = [as_launched(work, choice, room, capped) for choice in compared]
    tried = [
        *neighbours(work, predicted, room, parts),
        *(choice for grid in log_spaced(room.groups, grids) for choice in _on(work, grid)),
    ]
    busiest = {
        choice: Decision(work, choice).schedule.busiest
        for choice in (*asked, *(as_launched(work, choice, room, capped) for choice in tried))
    }
    fewest = min(busiest.values())
    return [choice for choice, most in busiest.items() if choice in asked or most <= FUTILE * fewest]


def neighbours(work: Work, choice: Choice, room: Room, parts: Collection[int]) -> Iterator[Choice]:
    """One work-group more or less, with all that may be split on that grid; of split-K, one part more or less."""
    if choice.splits > 1:
        yield from split_k(work, room, [n for n in (choice.splits - 1, choice.splits + 1) if n > 1 and parts])
        return
    for grid in (choice.grid, choice.grid - 1, choice.grid + 1):
        if 1 <= grid <= room.groups:
            yield from _on(work, grid)


def _on(work: Work, grid: int) -> list[Choice]:
    """None split, the remainder, that and a whole wave; without a remainder, splitting gives everybody whole tiles."""
    choices = choices_on(work, grid, None)
    return choices if work.tiles % grid else choices[:1]


def log_spaced(most: int, count: int) -> list[int]:
    """`count` whole numbers from 1 to `most`, as evenly spaced on a logarithmic scale as whole numbers are; all of them
    where there are no more."""
    points = count
    while len(grids := np.unique(np.geomspace(1, most, points).round().astype(int))) < min(count, most):
        points += 1
    return [int(grid) for grid in grids]
