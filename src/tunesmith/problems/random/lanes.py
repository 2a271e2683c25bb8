"""Generators that make a block of words at once, one word a lane: picking scattered words without keeping the streams.

There is no cheap way to skip in a Mersenne Twister (a jump costs as much as 20,000 words), so every row is followed to
its deepest word; cost: rows touched times their depth. Rows are taken in groups small enough for a processor's cache.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .arrays import Int64, Words


class Rows(Protocol):
    """Some rows of a generator, all at the same block; before the first `advance` there is none."""

    def advance(self) -> None:
        """On to the next block."""

    def read(self, row: Int64, lane: Int64) -> Words:
        """Words of the present block; `row` counts the rows of this group."""


class LaneGenerator(Protocol):
    lanes: int
    """How many engines share a row."""
    block_words: int
    group: int
    """How many rows to take at a time."""

    def initial_states(self, seed: int, numbers: Int64) -> Words:
        """(state words, rows), a column each."""
        ...

    def rows(self, seed: int, numbers: Int64) -> Rows: ...


def pick(generator: LaneGenerator, seed: int, row: Int64, number: Int64) -> Words:
    """(n, width): the words `number` (n, width) of the rows `row` (n,)."""
    block, lane = np.divmod(number, generator.block_words)
    rows, which = np.unique(row, return_inverse=True)
    deepest = np.zeros(len(rows), np.int64)
    np.maximum.at(deepest, which, block.max(axis=1))
    # Rows of like depth come together, so that none is followed much further than needed.
    by_depth = np.argsort(deepest)
    rank = np.empty_like(by_depth)
    rank[by_depth] = np.arange(len(rows))
    group, member = (np.repeat(part, number.shape[1]) for part in np.divmod(rank[which], generator.group))
    block, lane = block.ravel(), lane.ravel()
    blocks = int(deepest.max()) + 1
    turn = group * blocks + block
    order = np.argsort(turn)
    ends = np.searchsorted(turn[order], np.arange(-1, (int(group.max()) + 1) * blocks), side="right")
    words = np.empty(number.size, np.uint32)
    for first in range(0, len(rows), generator.group):
        taken = by_depth[first : first + generator.group]
        state = generator.rows(seed, rows[taken])
        before = first // generator.group * blocks
        for turn_now in range(before, before + int(deepest[taken[-1]]) + 1):
            state.advance()
            now = order[ends[turn_now] : ends[turn_now + 1]]
            words[now] = state.read(member[now], lane[now])
    return words.reshape(number.shape)
