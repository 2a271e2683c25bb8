"""Stream-K: which work-group computes which iterations along K of which tile, in whole numbers.

A fixed grid of work-groups first takes whole tiles in waves (data-parallel). Then it splits the iterations of the last
tiles evenly: each work-group takes one contiguous share. The sums of a tile with several shares are added in the order
of their work-groups, so that results repeat bit by bit. Kernels compute the same as `StreamKSchedule.segments`.

Sources: Osama and others, Stream-K (arXiv 2301.03598); Tensile's two-tile schedule, data-parallel part first
(`StreamK: 3`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


def ceil_div(number: int, by: int) -> int:
    return -(-number // by)


def iterations_of(k: int, depth: int) -> int:
    """Iterations of `depth` steps along K that a tile takes. If K is 0, this is one empty iteration, since the tile's
    elements must still be written."""
    return max(1, ceil_div(k, depth))


def streamed_tiles(tiles: int, grid: int, full_tiles: int) -> int:
    """The number of tiles that are split: those beyond whole waves of the grid, and `full_tiles` whole waves more.

    0 if no tile is left beyond whole waves and `full_tiles` is 0, and if `full_tiles` is -1; never more than `tiles`.
    """
    return max(0, min(tiles % grid + full_tiles * grid, tiles))


@dataclass(frozen=True, slots=True)
class Segment:
    """Iterations `begin` to `end` of a tile, which one work-group computes.

    `slot` is the index of its sums in the workspace, or None if the segment is the whole tile.
    """

    tile: int
    begin: int
    end: int
    slot: int | None


@dataclass(frozen=True, slots=True)
class StreamKSchedule:
    """`tiles` output tiles of `iterations` each, on `grid` work-groups.

    The tiles are those of all matrices of a batch, one after the other. The last `streamed` tiles are split by
    iterations, and the others are dealt in turn. Or every tile is cut into `splits` parts, as equal as possible
    (split-K), and the parts are dealt in turn.

    Raises ValueError for numbers that make no schedule, such as both `streamed` and `splits`.
    """

    tiles: int
    iterations: int
    grid: int
    streamed: int = 0
    splits: int = 1

    def __post_init__(self) -> None:
        contradictory = self.streamed > 0 and self.splits > 1
        if contradictory or min(self.iterations, self.grid, self.splits) < 1 or not 0 <= self.streamed <= self.tiles:
            raise ValueError(f"no schedule: {self}")

    @staticmethod
    def two_tile(tiles: int, iterations: int, grid: int, full_tiles: int) -> StreamKSchedule:
        """The schedule in which the last `full_tiles` waves and the remainder are split."""
        return StreamKSchedule(tiles, iterations, grid, streamed_tiles(tiles, grid, full_tiles))

    @property
    def alone(self) -> int:
        """The number of tiles that are not streamed; they are the first ones."""
        return self.tiles - self.streamed

    @property
    def per_group(self) -> int:
        """Streamed iterations of each work-group, not counting the additional one of the first `extra` work-groups."""
        return self.streamed * self.iterations // self.grid

    @property
    def extra(self) -> int:
        """The number of work-groups that take one iteration more; they are the first ones."""
        return self.streamed * self.iterations % self.grid

    @property
    def busiest(self) -> int:
        """Iterations of the first work-group, which has most; with `splits`, an upper bound for any work-group."""
        dealt = ceil_div(self.alone * self.splits, self.grid) * ceil_div(self.iterations, self.splits)
        return dealt + self.per_group + (self.extra > 0)

    @property
    def slots(self) -> int:
        """The number of slots in the workspace for sums over part of a tile; 0 if no tile is shared.

        A streamed share is contiguous. So only its first segment can begin inside a tile: its slot is the work-group's
        number. Only its last segment can begin a tile without ending it: its slot is the work-group's number plus the
        grid.
        """
        if self.splits > 1:
            return self.tiles * self.splits
        return 2 * self.grid if self.shared else 0

    @property
    def shared(self) -> bool:
        """Whether any tile has more than one work-group. No streamed tile has if every share has only whole tiles."""
        if self.splits > 1:
            return True
        return self.iterations > 1 and not (self.extra == 0 and self.per_group % self.iterations == 0)

    def start(self, group: int) -> int:
        """The first iteration of a work-group's share, counted from the first streamed tile."""
        return group * self.per_group + min(group, self.extra)

    def group_at(self, iteration: int) -> int:
        """The work-group whose share contains this streamed iteration."""
        longer = self.extra * (self.per_group + 1)
        if iteration < longer:
            return iteration // (self.per_group + 1)
        return self.extra + (iteration - longer) // self.per_group

    def groups_on(self, tile: int) -> range:
        """The work-groups that share a streamed tile, its owner first; their sums are added in this order."""
        first = (tile - self.alone) * self.iterations
        return range(self.group_at(first), self.group_at(first + self.iterations - 1) + 1)

    def part(self, number: int) -> tuple[int, int]:
        """The first iteration of part `number` of a tile that is cut into `splits`, and the one after its last."""
        each, longer = divmod(self.iterations, self.splits)
        begin = number * each + min(number, longer)
        return begin, begin + each + (number < longer)

    def segments(self, group: int) -> Iterator[Segment]:
        """All segments of one work-group, in order: what a kernel computes from its own number."""
        for dealt in range(group, self.alone * self.splits, self.grid):
            tile, number = divmod(dealt, self.splits)
            begin, end = self.part(number)
            yield Segment(tile, begin, end, None if self.splits == 1 else dealt)
        iteration, stop = self.start(group), self.start(group + 1)
        while iteration < stop:
            tile, begin = divmod(iteration, self.iterations)
            end = min(self.iterations, begin + stop - iteration)
            whole = end - begin == self.iterations
            slot = None if whole else group + (self.grid if begin == 0 else 0)
            yield Segment(self.alone + tile, begin, end, slot)
            iteration += end - begin
