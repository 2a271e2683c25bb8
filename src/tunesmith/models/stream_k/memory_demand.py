"""How much of the time work-groups wait for memory, because the operands that they need are not in the cache.

In each iteration a work-group needs a piece of A and a piece of B. Tiles in one row share their pieces of A, tiles in
one column their pieces of B. If work-groups go through adjacent tiles at the same position of K, one of them fetches a
piece and the others find it in the cache. If shares begin anywhere, every work-group is at its own position of K, and a
piece of A is requested again when another share of its row reaches that position. Meanwhile the operands of the tiles
in between are fetched: for a piece of A those of a column of tiles, for a piece of B those of a row. If the cache
cannot hold that much, every work-group fetches from memory.

Waiting adds to an iteration only as far as the arithmetic does not hide it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import ceil_div

from .records import DeviceCapacity, TiledProduct

Floats = NDArray[np.float64]

KEPT, GONE = 0.3, 1.0
"""Bytes fetched since a piece was used, as multiples of the cache size: up to KEPT the piece is still in the cache,
from GONE on it is not. A cache of two halves holds some of its contents twice. Fitted to 600 products on an H200
(2026-11-22), rounded."""
HIDDEN = 0.3
"""The share of the largest possible memory demand that arithmetic hides. Measured on an H200 (2026-11-22): with half of
the work-groups, each at its own position of K, little time is lost; with all of them the time doubles."""


class MemoryDemand(NamedTuple):
    """What a product requests from memory, as a share of what all multiprocessors can request.

    `first` are pieces that are requested for the first time. `again_of_a` and `again_of_b` are pieces of A and B that
    have left the cache, if each work-group is at its own position of K. `rows` is the number of tiles in a column,
    `units` the number of multiprocessors; work-groups walk over tiles in blocks that are `block` tiles wide.
    """

    first: float
    again_of_a: float
    again_of_b: float
    rows: int
    block: int
    units: int

    @staticmethod
    def of(work: TiledProduct, room: DeviceCapacity) -> MemoryDemand:
        """Zero if there is no work, or if the size of the cache is unknown."""
        along_m, along_n = room.cached
        if not (work.tiles and along_m and along_n):
            return MemoryDemand(0.0, 0.0, 0.0, 1, 1, room.multiprocessors)
        rows = max(work.down, 1)
        down, across = min(work.tiles, rows), ceil_div(work.tiles, rows)
        # The operands of a tile over all of K, as a multiple of the cache size; the shares of A and B in them.
        tile_operands = work.iterations * (1 / along_m + 1 / along_n)
        of_a, of_b = along_n / (along_m + along_n), along_m / (along_m + along_n)
        again_of_a, again_of_b = of_a * _gone(down * tile_operands), of_b * _gone(across * tile_operands)
        first = (of_a - again_of_a) / across + (of_b - again_of_b) / down
        block = min(work.block, ceil_div(across, work.batch))
        return MemoryDemand(first, again_of_a, again_of_b, rows, block, room.multiprocessors)

    @property
    def again(self) -> float:
        """What is fetched a second time, if each work-group is at its own position of K."""
        return self.again_of_a + self.again_of_b

    @property
    def alone(self) -> float:
        """All that is fetched if each work-group is at its own position of K: the most that can be."""
        return self.first + self.again

    @property
    def keeps_up(self) -> bool:
        """Whether no work-group waits, whatever their positions of K."""
        return self.alone <= HIDDEN

    def keeps_up_in_step(self, tiles: int) -> bool:
        """Whether work-groups with adjacent whole tiles never wait, however many they are. They request a piece of A
        once for each row that they are in, and a piece of B once for each column."""
        first = self.first * min(tiles / self.units, 1.0)
        again = self.again_of_a * self.rows / self.units + self.again_of_b * max(1 / self.rows, self.block / self.units)
        return first + again <= HIDDEN

    def waiting(self, busy: int, together: int) -> float:
        """The part of an iteration that waits: 1 if every multiprocessor has a work-group and none of them shares a
        piece. `busy` work-groups run at once; `together` of them are at the same position of K, in adjacent tiles."""
        across = max(min(together, self.block), ceil_div(together, self.rows))
        down = min(ceil_div(together, self.block), self.rows)
        demand = (self.first + self.again_of_a / across + self.again_of_b / down) * min(busy / self.units, 1.0)
        return max(demand - HIDDEN, 0.0) / (1 - HIDDEN)

    def cost_alone(self, cost: float, busy: Floats) -> Floats:
        """What waiting adds to an iteration if each work-group is at its own position of K. `cost` is that of an
        iteration that waits all the time; `busy` are shares of the multiprocessors."""
        cost /= 1 - HIDDEN
        return np.maximum(busy * (cost * self.alone) - cost * HIDDEN, 0.0)

    def cost_in_step(self, cost: float, busy: Floats, together: Floats) -> Floats:
        """The same if `together` work-groups are at the same position of K, in adjacent tiles."""
        cost /= 1 - HIDDEN
        across = np.maximum(np.minimum(together, self.block), np.ceil(together / self.rows))
        down = np.minimum(np.ceil(together / self.block), self.rows)
        of_a, of_b = cost * self.again_of_a / across, cost * self.again_of_b / down
        return np.maximum((of_a + of_b + cost * self.first) * busy - cost * HIDDEN, 0.0)


def _gone(fetched_since: float) -> float:
    """The share of pieces that have left the cache after fetching so much, in multiples of the cache size."""
    return min(max((fetched_since - KEPT) / (GONE - KEPT), 0.0), 1.0)
