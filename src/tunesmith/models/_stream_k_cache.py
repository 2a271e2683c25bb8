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

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import ceil_div

from ._stream_k_records import Room, Work

Floats = NDArray[np.float64]

KEPT, GONE = 0.3, 1.0
"""Of what was fetched since, in sizes of the cache: up to the first a piece is still there, from the second on not. A
cache of two halves keeps some of its contents twice. What fits 600 products on an H200 (2026-11-22), rounded."""
HIDDEN = 0.3
"""Pieces from memory, of as many as all multiprocessors can ask for, that products hide. Seen on an H200 (2026-11-22):
with half of the work-groups, each at a place of its own, nothing is lost; all of them take twice the time."""


def fits(work: Work, room: Room) -> bool:
    """Whether nobody waits, whoever is at which place of K: all that is fetched is fetched once, and hidden."""
    if not work.tiles or not all(room.cached):
        return True
    rows, along_m = max(work.down, 1), _along_m(room)
    down, across = min(work.tiles, rows), ceil_div(work.tiles, rows)
    once = along_m / across + (1 - along_m) / down
    return max(down, across) * _each(work, room) <= KEPT and once <= HIDDEN


def in_step(work: Work, room: Room) -> bool:
    """Whether work-groups with whole tiles side by side never wait, however many they are: what they fetch at most, a
    column's pieces of A and a row's of B, is hidden."""
    rows, along_m = max(work.down, 1), _along_m(room)
    return along_m * rows / room.multiprocessors + (1 - along_m) / rows <= HIDDEN


def waits(work: Work, room: Room, iterations: Floats, busy: Floats, together: Floats) -> Floats:
    """Of so many `iterations`, those that wait: all if every multiprocessor has a work-group and none shares a piece.

    `busy` work-groups are in them at once, so many of these `together`: at one place of K, their tiles side by side.
    There is work, and the size of the cache is known.
    """
    rows, along_m = max(work.down, 1), _along_m(room)
    down, across, each = min(work.tiles, rows), ceil_div(work.tiles, rows), _each(work, room)
    again_of_a = (1 / np.ceil(together / rows) - 1 / across) * _gone(down * each)
    again_of_b = (1 / np.minimum(together, rows) - 1 / down) * _gone(across * each)
    from_memory = along_m * (again_of_a + 1 / across) + (1 - along_m) * (again_of_b + 1 / down)
    from_memory *= np.minimum(busy * (1 / room.multiprocessors), 1.0)
    return np.asarray(iterations * (np.maximum(from_memory - HIDDEN, 0.0) * (1 / (1 - HIDDEN))))


def _along_m(room: Room) -> float:
    """A's part of what a work-group needs."""
    along_m, along_n = room.cached
    return along_n / (along_m + along_n)


def _each(work: Work, room: Room) -> float:
    """What a tile needs over all of K, in sizes of the cache."""
    along_m, along_n = room.cached
    return work.iterations * (1 / along_m + 1 / along_n)


def _gone(since: float) -> float:
    """How much is not there any more, when so much was fetched since, in sizes of the cache."""
    return min(max((since - KEPT) / (GONE - KEPT), 0.0), 1.0)
