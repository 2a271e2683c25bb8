"""How `BlockedGemm` cuts D into blocks, one for each work-group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from tunesmith.kernels.gemm.stream_k import ceil_div
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration

from .schedule import OpenCLSchedule

CACHE_BLOCKS, FEW_COLUMNS = "CacheBlocks", "FewColumns"
DEPTHS = {CACHE_BLOCKS: 320, FEW_COLUMNS: 4}
"""DepthU if the configuration gives 0."""

PANELS = 4
"""Panels of A that are copied side by side: so many vectors of a row lie together in memory."""
COPY_A, COPY_B = 4.0, 24.0
"""What it costs to copy one row of A and one column of B, in elements of D for which one step along K is multiplied. B
is usually contiguous along K, and its columns become rows one element at a time. Orders of magnitude: they only decide
between blocks that fill the device equally well."""
WAVES = 4
"""D is not cut into more blocks than so many for each unit, unless MacroTile needs them."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of D: `rows` x `columns` elements each, `count` of them along M and N."""

    rows: int
    columns: int
    count: tuple[int, int]

    @staticmethod
    def of(gemm: Gemm, config: Configuration, units: int) -> Blocks:
        """The blocks of at most MacroTile that keep `units` busy for the shortest time: whole tiles, all about equally
        large. Along M and N, they are at most `units` more than MacroTile needs."""
        schedule = schedule_of(config)
        most, tile = config.integers("MacroTile"), schedule.thread_tile
        if config.word("Schedule") == FEW_COLUMNS:
            tile = (schedule.vector, most[1])
        return _cut((gemm.m, gemm.n), (most[0], most[1]), (tile[0], tile[1]), gemm.batch, units)


@lru_cache(maxsize=4096)
def schedule_of(config: Configuration) -> OpenCLSchedule:
    """The sizes of a work-group's work, in which a tile is what registers hold."""
    few = config.word("Schedule") == FEW_COLUMNS
    tile0, tile1 = config.integers("ThreadTile")
    depth = config.integer("DepthU") or DEPTHS[FEW_COLUMNS if few else CACHE_BLOCKS]
    return OpenCLSchedule(
        work_group=(1, 1),
        local_split=1,
        thread_tile=(tile0, tile1),
        vector=config.integer("VectorWidth"),
        depth=depth,
        loop_unroll=depth if few else config.integer("LoopUnroll") or 4,
        global_split=1,
        mapping=1,
        stream_grid=0,
        stream_full_tiles=0,
    )


@lru_cache(maxsize=4096)
def _cut(sizes: tuple[int, int], most: tuple[int, int], tile: tuple[int, int], batch: int, units: int) -> Blocks:
    rows, columns = (_cuts(*axis, units) for axis in zip(sizes, most, tile, strict=True))
    enough = max(WAVES * units, rows[0][1] * columns[0][1] * batch)

    def cost(cut: tuple[tuple[int, int], tuple[int, int]]) -> float:
        (extent0, count0), (extent1, count1) = cut
        waves = ceil_div(count0 * count1 * batch, units)
        return waves * (extent0 * extent1 + COPY_A * extent0 + COPY_B * extent1)

    cuts = (cut for cut in product(rows, columns) if cut[0][1] * cut[1][1] * batch <= enough)
    (extent0, count0), (extent1, count1) = min(cuts, key=cost)
    return Blocks(extent0, extent1, (count0, count1))


def _cuts(size: int, most: int, tile: int, units: int) -> list[tuple[int, int]]:
    """The extents of blocks along one side, each with their number: from the fewest blocks to `units` more."""
    fewest = ceil_div(size, most)
    extents = dict.fromkeys(ceil_div(ceil_div(size, parts), tile) * tile for parts in range(fewest, fewest + units + 1))
    return [(extent, ceil_div(size, extent)) for extent in extents]
