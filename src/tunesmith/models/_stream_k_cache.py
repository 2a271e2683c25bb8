"""What is fetched from memory again because work-groups are at different places of K: shares that end anywhere.

Work-groups that go through whole tiles side by side are at the same place of K, and what one fetches the others find in
the cache. In shares that begin anywhere, a piece of an operand is asked for again when another share comes by. Until
then as much is fetched as belongs to the tiles on the way: for a row of tiles, which have their piece of A in common,
what a column of them needs, and the other way round. Where the cache does not keep that much, everyone fetches from
memory.

Memory then bounds the iteration, but only what products do not hide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import ceil_div

from ._stream_k_records import Room, Work

Floats = NDArray[np.float64]

KEPT, GONE = 0.5, 1.5
"""Of what was fetched since, in sizes of the cache: up to the first a piece is still there, from the second on not. A
cache is not filled by one kernel's operands alone, nor in order."""
HIDDEN = 0.3
"""Fetches from memory, of as many as all work-groups can make, that products hide. Seen on an H200 (2026-11-22): with
half of the work-groups, each at a place of its own, nothing is lost; all of them take twice the time."""


def fits(work: Work, room: Room) -> bool:
    """Whether nothing is fetched again, whoever is at which place of K."""
    return max(work.down, ceil_div(work.tiles, max(work.down, 1))) * _each(work, room) <= KEPT


def misaligned(work: Work, room: Room, grid: Floats, streamed: Floats, share: Floats, places: Floats) -> Floats:
    """Iterations of a share that wait for memory, for `grid` work-groups that share `streamed` tiles, each at one of
    so many `places` of K. Numbers or arrays; there is at least one streamed tile where there is a share."""
    each, rows = _each(work, room), max(work.down, 1)
    some = np.maximum(streamed, 1.0)
    down, across = np.minimum(some, rows), np.minimum(np.ceil(some / rows), ceil_div(work.tiles, rows))
    along_m, along_n = room.cached
    a_of_both = along_n / max(along_m + along_n, 1)
    fetched = (a_of_both - a_of_both / across) * _gone(down * each)
    fetched += ((1 - a_of_both) - (1 - a_of_both) / down) * _gone(across * each)
    fetched *= np.minimum(grid / room.multiprocessors, 1.0) * np.sqrt(places / grid)
    return np.asarray(share * np.maximum(fetched - HIDDEN, 0.0) * (1 / (1 - HIDDEN)))


def _each(work: Work, room: Room) -> float:
    """What a tile needs over all of K, in sizes of the cache; nothing where nobody knows its size."""
    along_m, along_n = room.cached
    return work.iterations * (1 / along_m + 1 / along_n) if along_m and along_n else 0.0


def _gone(since: Floats) -> Floats:
    """How much is not there any more, when so much was fetched since, in sizes of the cache."""
    return np.minimum(np.maximum((since - KEPT) * (1 / (GONE - KEPT)), 0.0), 1.0)
