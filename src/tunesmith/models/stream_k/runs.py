"""The runs that the costs are fitted to: about forty, each telling one of them apart from the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tunesmith.kernels.gemm.stream_k import ceil_div

from .records import MacroTile, Room, StreamKChoice, Work

WHOLE = (4, 16, 64, 256)
"""Iterations of tiles that nobody shares."""
SHARED = (48, 192)
"""Iterations of tiles that are cut: multiples of all PARTS, so that every share is as long as the others."""
PARTS = (2, 3, 4, 6, 8, 12, 16)
SKEWED = (16, 64)
"""Iterations of tiles over which shares run on."""
BEYOND = (2, 4)
"""Times the cache that the operands of such tiles are, to see what it costs that it does not hold them."""
IN_TURNS = (2, 4)
"""Parts of K of a product that is many turns then."""
FAR_BEYOND = 12
"""Times the cache that its operands are: in short turns nobody loses step."""
DEEPEST = 1 << 17
"""Steps along K: products that are deeper nobody has, and a large cache must not make a short run long."""

USUAL_DEPTH = 64
"""Steps of the iterations above. Shallower ones are counted in fours, eights ..., so that a run is not all launch."""


@dataclass(frozen=True, slots=True)
class StreamKRun:
    """What a choice took: median seconds of the whole launch plan."""

    work: Work
    choice: StreamKChoice
    seconds: float


def calibration_runs(room: Room, tile: MacroTile, splits: Collection[int]) -> list[tuple[Work, StreamKChoice]]:
    """What to measure for a tile: no run twice, at most as many work-groups as there is room for, or as the most parts
    of a tile where that is more. `splits` are the parts of K that the kernel can have."""
    depth = tile.depth
    scale = max(1, USUAL_DEPTH // depth)
    near = (*_whole(room), *_in_turn(room), *_shared(room), *_skewed(room))
    far = (*_beyond_the_cache(room), *_in_parts(room, splits))
    planned = [(tiles, iterations * scale, choice) for tiles, iterations, choice in near]
    planned += [(tiles, min(iterations, DEEPEST // depth), choice) for tiles, iterations, choice in far]
    return [
        (Work(tiles, iterations, depth, block=tile.block), choice)
        for tiles, iterations, choice in dict.fromkeys(planned)
    ]


Planned = tuple[int, int, StreamKChoice]


def _whole(room: Room) -> Iterator[Planned]:
    """A tile a work-group: start and iteration by the slope over iterations; busy and wave by the number of groups."""
    for grid in (1, room.multiprocessors, room.groups):
        for iterations in WHOLE:
            yield grid, iterations, StreamKChoice(grid)
    half = max(1, room.multiprocessors // 2)
    for iterations in SKEWED:
        yield half, iterations, StreamKChoice(half)


def _in_turn(room: Room) -> Iterator[Planned]:
    """Several tiles a work-group: what each further one costs."""
    for waves in (2, 4):
        for iterations in (WHOLE[0], WHOLE[2]):
            yield waves * room.multiprocessors, iterations, StreamKChoice(room.multiprocessors)


def _shared(room: Room) -> Iterator[Planned]:
    """Whole parts of tiles: partial and peer by the slope over parts."""
    for parts in PARTS:
        tiles = max(1, room.multiprocessors // parts)
        for iterations in SHARED:
            yield tiles, iterations, StreamKChoice(tiles * parts, streamed=tiles)


def _skewed(room: Room) -> Iterator[Planned]:
    """A full wave with a remainder of one tile, half of them, all but one; and remainders alone."""
    grid = room.multiprocessors
    remainders = sorted({1, max(1, grid // 2), max(1, grid - 1)})
    for tiles in remainders:
        for iterations in SKEWED:
            yield grid + tiles, iterations, StreamKChoice(grid, streamed=grid + tiles)
    for tiles in {grid // 2 + 1, grid - 1} - {0, grid}:
        yield tiles, SKEWED[-1], StreamKChoice(grid, streamed=tiles)
    if room.occupancy > 1:
        for iterations in SKEWED:
            tiles = room.groups + room.groups // 2
            yield tiles, iterations, StreamKChoice(room.groups, streamed=tiles)


def _beyond_the_cache(room: Room) -> Iterator[Planned]:
    """Squares of about a third of a wave and of a wave and a half, every share at another place of K; and the second as
    whole tiles, which are all at the same."""
    grid = room.multiprocessors
    for times in BEYOND if all(room.cached) else ():
        for side in (max(1, math.isqrt(grid // 3)), math.isqrt(3 * grid // 2)):
            tiles, iterations = _square(room, side, times)
            yield tiles, iterations, StreamKChoice(grid, streamed=tiles)
        yield tiles, iterations, StreamKChoice(grid)


def _in_parts(room: Room, splits: Collection[int]) -> Iterator[Planned]:
    """A square of about four waves in parts: many turns, and long ones."""
    for parts in IN_TURNS if all(room.cached) else ():
        if parts in splits:
            tiles, iterations = _square(room, math.isqrt(4 * room.groups), FAR_BEYOND)
            yield tiles, iterations, StreamKChoice(min(tiles * parts, room.groups), splits=parts)


def _square(room: Room, side: int, times: int) -> tuple[int, int]:
    """So many tiles along M, one more along N, and their iterations: operands of `times` the size of the cache."""
    m, n = room.cached
    return side * (side + 1), ceil_div(times * m * n, (m + n) * side) + 1
