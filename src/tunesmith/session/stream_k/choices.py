"""Which launches of a product a sweep tries, and which of them are one and the same."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from tunesmith.models.stream_k.predict import Room, StreamKChoice, StreamKDecision, Work, choices_on

GRIDS = 24
SPLITS = (2, 4, 8, 16)

EVEN = (1, 2, 3, 4, 6, 8, 12, 16)
"""Work-groups for each tile that equal shares of K may have."""

FUTILE = 10.0
"""Times the fewest iterations that a work-group may have, which no other cost of a launch makes up for."""


def as_launched(work: Work, choice: StreamKChoice, room: Room, capped: bool) -> StreamKChoice:
    """The choice that stands for all that are launched alike, in the words of the models.

    Whole tiles are launched with a work-group each, so that any grid means the same, unless grids are `capped`. With
    split-K, every part has a work-group.
    """
    if choice.splits > 1:
        return StreamKChoice.split_k(work, room, choice.splits)
    return choice if choice.streamed or capped else StreamKChoice.whole_tiles(work, room)


def split_k(work: Work, room: Room, parts: Collection[int]) -> list[StreamKChoice]:
    """A choice for each number of parts that K has iterations for."""
    return [StreamKChoice.split_k(work, room, number) for number in parts if number <= work.iterations]


def sweep_of(
    work: Work,
    room: Room,
    said: Iterable[StreamKChoice],
    *,
    grids: int,
    parts: Collection[int],
    capped: bool,
) -> tuple[list[StreamKChoice], list[StreamKChoice]]:
    """What is compared, each once: what the ways to decide have `said`; and what is searched, which does not depend on
    it. That is whole tiles and split-K; `grids` grids and those that cut every tile evenly, with every number of split
    tiles that makes sense, unless it has no chance.
    """
    asked = dict.fromkeys(as_launched(work, choice, room, capped) for choice in said)
    plain = [StreamKChoice.whole_tiles(work, room), *split_k(work, room, parts)]
    shared = [choice for grid in _searched(work, room, grids) for choice in _on(work, grid)]
    searched = dict.fromkeys(as_launched(work, choice, room, capped) for choice in (*plain, *shared))
    busiest = {choice: StreamKDecision(work, choice).schedule.busiest for choice in searched}
    fewest = min(busiest.values())
    return list(asked), [one for one, most in busiest.items() if one in plain or most <= FUTILE * fewest]


def closer(
    work: Work, best: StreamKChoice, room: Room, *, grids: int, parts: Collection[int], capped: bool
) -> Iterator[StreamKChoice]:
    """What is next to the best that was searched: of split-K, one part more or less; else one work-group more or less,
    and half the way to the grids that were searched beside it, on a logarithmic scale."""
    if best.splits > 1:
        yield from split_k(work, room, [n for n in (best.splits - 1, best.splits + 1) if n > 1 and parts])
        return
    if not best.streamed and not capped:
        return
    searched = _searched(work, room, grids)
    beside = (
        max((g for g in searched if g < best.grid), default=1),
        min((g for g in searched if g > best.grid), default=1),
    )
    halfway = (round(math.sqrt(best.grid * other)) for other in beside if other > 1)
    for grid in sorted({best.grid - 1, best.grid + 1, *halfway} - {best.grid}):
        if 1 <= grid <= room.groups:
            yield from (as_launched(work, choice, room, capped) for choice in _on(work, grid))


def _searched(work: Work, room: Room, grids: int) -> list[int]:
    """Evenly spaced ones, and those with a few work-groups for every tile."""
    even = (work.tiles * parts for parts in EVEN)
    return sorted({*log_spaced(room.groups, grids), *(grid for grid in even if grid <= room.groups)})


def _on(work: Work, grid: int) -> list[StreamKChoice]:
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
