"""Stream-K: which work-group computes which iterations along K of which tile, exactly. Whole numbers, no device.

A fixed grid of work-groups first takes whole tiles in waves (data-parallel), then splits the iterations of the last
tiles evenly, each work-group one contiguous share. A tile that several shares meet in is added up in the order of
their work-groups, so that results repeat bit by bit. Kernels mirror `StreamKSchedule.segments`.

Sources: Osama and others, Stream-K (arXiv 2301.03598); Tensile's two-tile schedule, data-parallel part first
(`StreamK: 3`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


def ceil_div(number: int, by: int) -> int:
    return -(-number // by)


def iterations_of(k: int, depth: int) -> int:
    """Iterations of `depth` steps along K that a tile takes; one, with nothing in it, where K is 0, since its elements
    must still be written."""
    return max(1, ceil_div(k, depth))


def streamed_tiles(tiles: int, grid: int, full_tiles: int) -> int:
    """Tiles that are split: those beyond whole waves of the grid, and `full_tiles` whole waves more.

    None where nothing is left beyond whole waves and none are asked for, and with -1; never more than there are.
    """
    return max(0, min(tiles % grid + full_tiles * grid, tiles))


@dataclass(frozen=True, slots=True)
class Segment:
    """What a work-group does at a stretch: iterations `begin` to `end` of a tile. `slot` is the place of its sums in
    the workspace, or None where it has the whole tile."""

    tile: int
    begin: int
    end: int
    slot: int | None


@dataclass(frozen=True, slots=True)
class StreamKSchedule:
    """`tiles` output tiles (those of all matrices of a batch, one after the other) of `iterations` each, on `grid`
    work-groups. The last `streamed` of the tiles are split by iterations, the others are dealt in turn; or every tile
    is cut into `splits` parts as equal as can be (split-K), and the parts are dealt in turn.

    Raises ValueError for numbers that make no schedule, both ways of cutting at once among them.
    """

    tiles: int
    iterations: int
    grid: int
    streamed: int = 0
    splits: int = 1

    def __post_init__(self) -> None:
        both = self.streamed > 0 and self.splits > 1
        if both or min(self.iterations, self.grid, self.splits) < 1 or not 0 <= self.streamed <= self.tiles:
            raise ValueError(f"no schedule: {self}")

    @staticmethod
    def two_tile(tiles: int, iterations: int, grid: int, full_tiles: int) -> StreamKSchedule:
        """The last `full_tiles` waves and the remainder are split."""
        return StreamKSchedule(tiles, iterations, grid, streamed_tiles(tiles, grid, full_tiles))

    @property
    def alone(self) -> int:
        """Tiles that are not streamed: the first ones."""
        return self.tiles - self.streamed

    @property
    def per_group(self) -> int:
        """Streamed iterations of a work-group, those beyond `extra`."""
        return self.streamed * self.iterations // self.grid

    @property
    def extra(self) -> int:
        """How many work-groups, the first ones, take one more."""
        return self.streamed * self.iterations % self.grid

    @property
    def busiest(self) -> int:
        """Iterations of the work-group that has most, the first one; with `splits`, no work-group has more."""
        dealt = ceil_div(self.alone * self.splits, self.grid) * ceil_div(self.iterations, self.splits)
        return dealt + self.per_group + (self.extra > 0)

    @property
    def slots(self) -> int:
        """Places in the workspace for sums over part of a tile; 0 where no tile is shared.

        A streamed share is contiguous, so of its segments only the first can begin inside a tile (slot: the
        work-group's number) and only the last can begin a tile and not end it (as far behind as the grid is large).
        """
        if self.splits > 1:
            return self.tiles * self.splits
        return 2 * self.grid if self.shared else 0

    @property
    def shared(self) -> bool:
        """Whether any tile has more than one work-group: no streamed tile has when every share is of whole tiles."""
        if self.splits > 1:
            return True
        return self.iterations > 1 and not (self.extra == 0 and self.per_group % self.iterations == 0)

    def start(self, group: int) -> int:
        """Where a work-group's share begins, counted in iterations from the first streamed tile."""
        return group * self.per_group + min(group, self.extra)

    def group_at(self, iteration: int) -> int:
        """The work-group whose share has this streamed iteration."""
        longer = self.extra * (self.per_group + 1)
        if iteration < longer:
            return iteration // (self.per_group + 1)
        return self.extra + (iteration - longer) // self.per_group

    def groups_on(self, tile: int) -> range:
        """The work-groups that meet in a streamed tile, its owner first; their sums are added in this order."""
        first = (tile - self.alone) * self.iterations
        return range(self.group_at(first), self.group_at(first + self.iterations - 1) + 1)

    def part(self, number: int) -> tuple[int, int]:
        """Where part `number` of a tile that is cut into `splits` begins and ends."""
        each, longer = divmod(self.iterations, self.splits)
        begin = number * each + min(number, longer)
        return begin, begin + each + (number < longer)

    def segments(self, group: int) -> Iterator[Segment]:
        """All that one work-group does, in its order. The scalar form: what a kernel does with its own number."""
        for dealt in range(group, self.alone * self.splits, self.grid):
            tile, number = divmod(dealt, self.splits)
            begin, end = self.part(number)
            yield Segment(tile, begin, end, None if self.splits == 1 else dealt)
        at, stop = self.start(group), self.start(group + 1)
        while at < stop:
            tile, begin = divmod(at, self.iterations)
            end = min(self.iterations, begin + stop - at)
            whole = end - begin == self.iterations
            slot = None if whole else group + (self.grid if begin == 0 else 0)
            yield Segment(self.alone + tile, begin, end, slot)
            at += end - begin
