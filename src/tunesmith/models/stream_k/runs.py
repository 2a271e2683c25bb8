"""The runs to which the costs are fitted: about forty, chosen so that the costs can be told apart."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tunesmith.kernels.gemm.stream_k import ceil_div

from .records import DeviceCapacity, MacroTile, StreamKChoice, TiledProduct

WHOLE = (4, 16, 64, 256)
"""Iterations of tiles that are not split."""
SHARED = (48, 192)
"""Iterations of tiles that are split into equal shares: multiples of all PARTS."""
PARTS = (2, 3, 4, 6, 8, 12, 16)
SKEWED = (16, 64)
"""Iterations of tiles if shares extend over tile boundaries."""
BEYOND = (2, 4)
"""Size of the operands, in multiples of the cache, in runs that measure the cost of fetching pieces again."""
IN_TURNS = (2, 4)
"""Numbers of parts of K in runs of split-K with several turns."""
FAR_BEYOND = 12
"""Size of the operands, in multiples of the cache, in runs of split-K: in short turns work-groups stay in step."""
DEEPEST = 1 << 17
"""Steps along K: no real product is deeper, and a large cache must not make a short run long."""

USUAL_DEPTH = 64
"""Steps along K in one of the iterations above. For a shallower tile the iterations are multiplied, so that launch
overhead does not dominate the run."""


@dataclass(frozen=True, slots=True)
class StreamKRun:
    """A choice and its measured time: median seconds of the whole launch plan."""

    work: TiledProduct
    choice: StreamKChoice
    seconds: float


def calibration_runs(
    room: DeviceCapacity, tile: MacroTile, splits: Collection[int]
) -> list[tuple[TiledProduct, StreamKChoice]]:
    """What to measure for a tile, without duplicates. No run has more work-groups than `room` holds, or than the
    largest of PARTS if that is more. `splits` are the numbers of parts of K that the kernel supports."""
    depth = tile.depth
    scale = max(1, USUAL_DEPTH // depth)
    cached = (*_whole(room), *_in_turn(room), *_shared(room), *_skewed(room))
    uncached = (*_beyond_the_cache(room), *_in_parts(room, splits))
    planned = [(tiles, iterations * scale, choice) for tiles, iterations, choice in cached]
    planned += [(tiles, min(iterations, DEEPEST // depth), choice) for tiles, iterations, choice in uncached]
    return [
        (TiledProduct(tiles, iterations, depth, block=tile.block), choice)
        for tiles, iterations, choice in dict.fromkeys(planned)
    ]


Planned = tuple[int, int, StreamKChoice]
"""Tiles, iterations of each, and the choice to measure."""


def _whole(room: DeviceCapacity) -> Iterator[Planned]:
    """One tile for each work-group. The slope over iterations gives start and iteration, the number of groups gives
    busy and wave."""
    for grid in (1, room.multiprocessors, room.groups):
        for iterations in WHOLE:
            yield grid, iterations, StreamKChoice(grid)
    half = max(1, room.multiprocessors // 2)
    for iterations in SKEWED:
        yield half, iterations, StreamKChoice(half)


def _in_turn(room: DeviceCapacity) -> Iterator[Planned]:
    """Several tiles for each work-group, which gives the cost of each further tile."""
    for waves in (2, 4):
        for iterations in (WHOLE[0], WHOLE[2]):
            yield waves * room.multiprocessors, iterations, StreamKChoice(room.multiprocessors)


def _shared(room: DeviceCapacity) -> Iterator[Planned]:
    """Tiles in equal parts. The slope over the number of parts gives partial and peer."""
    for parts in PARTS:
        tiles = max(1, room.multiprocessors // parts)
        for iterations in SHARED:
            yield tiles, iterations, StreamKChoice(tiles * parts, streamed=tiles)


def _skewed(room: DeviceCapacity) -> Iterator[Planned]:
    """A full wave with a remainder of one tile, of half a wave, of all but one tile; and remainders alone."""
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


def _beyond_the_cache(room: DeviceCapacity) -> Iterator[Planned]:
    """Squares of about a third of a wave and of a wave and a half, with every share at another position of K; and the
    second square as whole tiles, all at the same position of K."""
    grid = room.multiprocessors
    for cache_sizes in BEYOND if all(room.cached) else ():
        for side in (max(1, math.isqrt(grid // 3)), math.isqrt(3 * grid // 2)):
            tiles, iterations = _square(room, side, cache_sizes)
            yield tiles, iterations, StreamKChoice(grid, streamed=tiles)
        yield tiles, iterations, StreamKChoice(grid)


def _in_parts(room: DeviceCapacity, splits: Collection[int]) -> Iterator[Planned]:
    """A square of about four waves in parts of K: many turns, and long ones."""
    for parts in IN_TURNS if all(room.cached) else ():
        if parts in splits:
            tiles, iterations = _square(room, math.isqrt(4 * room.groups), FAR_BEYOND)
            yield tiles, iterations, StreamKChoice(room.groups, splits=parts)


def _square(room: DeviceCapacity, side: int, cache_sizes: int) -> tuple[int, int]:
    """Tiles and iterations of a product with `side` tiles along M and one more along N, whose operands are
    `cache_sizes` times as large as the cache."""
    m, n = room.cached
    return side * (side + 1), ceil_div(cache_sizes * m * n, (m + n) * side) + 1
