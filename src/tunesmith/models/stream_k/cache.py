"""How much of the time work-groups wait for memory, since what they need is not in the cache.

In each iteration a work-group needs a piece of A and one of B. Tiles of a row have their piece of A in common, those of
a column their piece of B. Of work-groups that go through tiles side by side, at the same place of K, one fetches a
piece and the others find it in the cache. In shares that begin anywhere everyone is at a place of its own, and a piece
of A is asked for again when another share of its row comes by. Until then as much is fetched as belongs to the tiles on
the way: what a column of them needs; for a piece of B, what a row needs. Where the cache does not keep that much,
everyone fetches from memory.

Memory bounds the iteration then, but only what products do not hide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import ceil_div

from .records import Room, Work

Floats = NDArray[np.float64]

KEPT, GONE = 0.3, 1.0
"""Of what was fetched since, in sizes of the cache: up to the first a piece is still there, from the second on not. A
cache of two halves keeps some of its contents twice. What fits 600 products on an H200 (2026-11-22), rounded."""
HIDDEN = 0.3
"""Pieces from memory, of as many as all multiprocessors can ask for, that products hide. Seen on an H200 (2026-11-22):
with half of the work-groups, each at a place of its own, little is lost; all of them take twice the time."""


class MemoryDemand(NamedTuple):
    """What a product asks of memory, in parts of what all multiprocessors can ask for: pieces that nobody had before,
    and those of A and of B that are `again` not in the cache where each work-group is at a place of its own. `rows` are
    the tiles in a column, `units` the multiprocessors; work-groups walk over tiles in blocks as wide as `block`."""

    first: float
    again_of_a: float
    again_of_b: float
    rows: int
    block: int
    units: int

    @staticmethod
    def of(work: Work, room: Room) -> MemoryDemand:
        """Nothing is asked where there is no work, or nobody knows the size of the cache."""
        along_m, along_n = room.cached
        if not (work.tiles and along_m and along_n):
            return MemoryDemand(0.0, 0.0, 0.0, 1, 1, room.multiprocessors)
        rows = max(work.down, 1)
        down, across = min(work.tiles, rows), ceil_div(work.tiles, rows)
        # What a tile needs over all of K, in sizes of the cache; A's part of what a work-group needs, and B's.
        each = work.iterations * (1 / along_m + 1 / along_n)
        of_a, of_b = along_n / (along_m + along_n), along_m / (along_m + along_n)
        again_of_a, again_of_b = of_a * _gone(down * each), of_b * _gone(across * each)
        first = (of_a - again_of_a) / across + (of_b - again_of_b) / down
        block = min(work.block, ceil_div(across, work.batch))
        return MemoryDemand(first, again_of_a, again_of_b, rows, block, room.multiprocessors)

    @property
    def again(self) -> float:
        """What is fetched a second time, if each work-group is at a place of its own."""
        return self.again_of_a + self.again_of_b

    @property
    def alone(self) -> float:
        """All that is asked then: it is never more."""
        return self.first + self.again

    @property
    def keeps_up(self) -> bool:
        """Whether nobody waits, whoever is at which place of K."""
        return self.alone <= HIDDEN

    def keeps_up_in_step(self, tiles: int) -> bool:
        """Whether work-groups with whole tiles side by side never wait, however many they are. They ask for a piece of
        A once for each row that they are in, for one of B once for each column."""
        first = self.first * min(tiles / self.units, 1.0)
        again = self.again_of_a * self.rows / self.units + self.again_of_b * max(1 / self.rows, self.block / self.units)
        return first + again <= HIDDEN

    def waiting(self, busy: int, together: int) -> float:
        """The part of an iteration that waits: all of it if every multiprocessor has a work-group and none shares a
        piece. `busy` work-groups are in it at once, so many of these `together`: at one place of K, their tiles side by
        side."""
        across = max(min(together, self.block), ceil_div(together, self.rows))
        down = min(ceil_div(together, self.block), self.rows)
        asked = (self.first + self.again_of_a / across + self.again_of_b / down) * min(busy / self.units, 1.0)
        return max(asked - HIDDEN, 0.0) / (1 - HIDDEN)

    def cost_alone(self, cost: float, busy: Floats) -> Floats:
        """What waiting adds to an iteration, `cost` where all of it waits, if each work-group is at a place of its own.
        `busy` are parts of the multiprocessors."""
        cost /= 1 - HIDDEN
        return np.maximum(busy * (cost * self.alone) - cost * HIDDEN, 0.0)

    def cost_in_step(self, cost: float, busy: Floats, together: Floats) -> Floats:
        """The same if so many are `together`."""
        cost /= 1 - HIDDEN
        across = np.maximum(np.minimum(together, self.block), np.ceil(together / self.rows))
        down = np.minimum(np.ceil(together / self.block), self.rows)
        of_a, of_b = cost * self.again_of_a / across, cost * self.again_of_b / down
        return np.maximum((of_a + of_b + cost * self.first) * busy - cost * HIDDEN, 0.0)


def _gone(since: float) -> float:
    """How much is not there any more, when so much was fetched since, in sizes of the cache."""
    return min(max((since - KEPT) / (GONE - KEPT), 0.0), 1.0)
