"""The launches of a product that a sweep tries, without repeating launches that are the same."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from tunesmith.models.stream_k.decision_models import (
    DeviceCapacity,
    StreamKChoice,
    StreamKDecision,
    TiledProduct,
    choices_on_grid,
)

GRIDS = 24
SPLITS = (2, 4, 8, 16)

EVEN = (1, 2, 3, 4, 6, 8, 12, 16)
"""The numbers of work-groups that may share each tile evenly."""

FUTILE = 10.0
"""A choice is left out if its busiest work-group has more than this many times the iterations of the best choice's: no
other cost of a launch makes up for that."""


def as_launched(work: TiledProduct, choice: StreamKChoice, room: DeviceCapacity, capped: bool) -> StreamKChoice:
    """The choice that stands for all choices with the same launch, in the form that the models use.

    Whole tiles are launched with a work-group for each tile, whatever the grid, unless grids are `capped`. With
    split-K, every part has a work-group.
    """
    if choice.splits > 1:
        return StreamKChoice.split_k(work, room, choice.splits)
    return choice if choice.streamed or capped else StreamKChoice.whole_tiles(work, room)


def split_k(work: TiledProduct, room: DeviceCapacity, parts: Collection[int]) -> list[StreamKChoice]:
    """A split-K choice for each number of parts, if K has at least so many iterations."""
    return [StreamKChoice.split_k(work, room, number) for number in parts if number <= work.iterations]


def sweep_of(
    work: TiledProduct,
    room: DeviceCapacity,
    predicted: Iterable[StreamKChoice],
    *,
    grids: int,
    parts: Collection[int],
    capped: bool,
) -> tuple[list[StreamKChoice], list[StreamKChoice]]:
    """The predicted choices and the searched choices of a sweep, each once.

    Searched choices do not depend on the predictions. They are whole tiles, split-K, and stream-K on `grids` log-spaced
    grids and on the grids that cut every tile evenly, with every useful number of split tiles. `FUTILE` choices are
    left out.
    """
    from_models = dict.fromkeys(as_launched(work, choice, room, capped) for choice in predicted)
    plain = [StreamKChoice.whole_tiles(work, room), *split_k(work, room, parts)]
    shared = [choice for grid in _searched_grids(work, room, grids) for choice in _choices_on_grid(work, grid)]
    searched = dict.fromkeys(as_launched(work, choice, room, capped) for choice in (*plain, *shared))
    busiest = {choice: StreamKDecision(work, choice).schedule.busiest for choice in searched}
    fewest = min(busiest.values())
    promising = [choice for choice, most in busiest.items() if choice in plain or most <= FUTILE * fewest]
    return list(from_models), promising


def neighbours_of_best(
    work: TiledProduct, best: StreamKChoice, room: DeviceCapacity, *, grids: int, parts: Collection[int], capped: bool
) -> Iterator[StreamKChoice]:
    """The choices next to the best searched one. For split-K: one part more or less. Else grids with one work-group
    more or less, and grids half the way to the next searched grids on a logarithmic scale."""
    if best.splits > 1:
        yield from split_k(work, room, [n for n in (best.splits - 1, best.splits + 1) if n > 1 and parts])
        return
    if not best.streamed and not capped:
        return
    searched = _searched_grids(work, room, grids)
    next_grids = (
        max((g for g in searched if g < best.grid), default=1),
        min((g for g in searched if g > best.grid), default=1),
    )
    halfway = (round(math.sqrt(best.grid * other)) for other in next_grids if other > 1)
    for grid in sorted({best.grid - 1, best.grid + 1, *halfway} - {best.grid}):
        if 1 <= grid <= room.groups:
            yield from (as_launched(work, choice, room, capped) for choice in _choices_on_grid(work, grid))


def _searched_grids(work: TiledProduct, room: DeviceCapacity, grids: int) -> list[int]:
    """Log-spaced grids, and the grids with equally many work-groups (`EVEN`) for every tile."""
    even = (work.tiles * parts for parts in EVEN)
    return sorted({*log_spaced(room.groups, grids), *(grid for grid in even if grid <= room.groups)})


def _choices_on_grid(work: TiledProduct, grid: int) -> list[StreamKChoice]:
    """Choices on a grid that split no tile, the remainder, or the remainder and a whole wave. Without a remainder, only
    the first: splitting would give every work-group whole tiles."""
    choices = choices_on_grid(work, grid, None)
    return choices if work.tiles % grid else choices[:1]


def log_spaced(most: int, count: int) -> list[int]:
    """`count` whole numbers from 1 to `most`, spaced about evenly on a logarithmic scale; all of them if there are no
    more than `count`."""
    points = count
    while len(grids := np.unique(np.geomspace(1, most, points).round().astype(int))) < min(count, most):
        points += 1
    return [int(grid) for grid in grids]
