"""Generators that make a block of words at once, one word a lane; `pick` takes scattered words of their streams.

There is no cheap way to skip in a Mersenne Twister (a jump costs as much as 20,000 words). So every row is followed to
its deepest requested word, and the cost is the number of rows times their depth. Rows are taken in groups that are
small enough for a processor's cache. No stream is kept.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .arrays import Int64, Words, distinct


class Rows(Protocol):
    """Some rows of a generator, all at the same block; before the first `advance` they have no block."""

    def advance(self) -> None:
        """Go on to the next block."""

    def read(self, row: Int64, lane: Int64) -> Words:
        """Words of the current block; `row` is an index among the rows of this group."""


class LaneGenerator(Protocol):
    lanes: int
    """Engines that share a row."""
    block_words: int
    group: int
    """Rows that are taken at a time."""

    def initial_states(self, seed: int, numbers: Int64) -> Words:
        """The states (state words, rows) of the rows with these numbers, a state a column."""
        ...

    def rows(self, seed: int, numbers: Int64) -> Rows: ...


def pick(generator: LaneGenerator, seed: int, row: Int64, number: Int64) -> Words:
    """The words (n, width) with the numbers `number` (n, width) of the rows `row` (n,)."""
    block, lane = np.divmod(number, generator.block_words)
    rows, which = distinct(row)
    deepest = np.zeros(len(rows), np.int64)
    np.maximum.at(deepest, which, block.max(axis=1))
    # Rows of similar depth share a group, so that no row is followed much further than needed.
    by_depth = np.argsort(deepest)
    rank = np.empty_like(by_depth)
    rank[by_depth] = np.arange(len(rows))
    group, member = (np.repeat(part, number.shape[1]) for part in np.divmod(rank[which], generator.group))
    block, lane = block.ravel(), lane.ravel()
    blocks = int(deepest.max()) + 1
    turn = group * blocks + block
    # A stable sort of numbers that fit in 16 bits, as most do, is a radix sort.
    order = np.argsort(turn.astype(np.min_scalar_type(int(turn.max()))), kind="stable")
    ends = np.searchsorted(turn[order], np.arange(-1, (int(group.max()) + 1) * blocks), side="right")
    words = np.empty(number.size, np.uint32)
    for first in range(0, len(rows), generator.group):
        group_rows = by_depth[first : first + generator.group]
        state = generator.rows(seed, rows[group_rows])
        first_turn = first // generator.group * blocks
        for current in range(first_turn, first_turn + int(deepest[group_rows[-1]]) + 1):
            state.advance()
            read_now = order[ends[current] : ends[current + 1]]
            words[read_now] = state.read(member[read_now], lane[read_now])
    return words.reshape(number.shape)
