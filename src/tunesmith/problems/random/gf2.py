"""Matrices over the field of two elements, for skipping ahead in generators whose step is linear in its state's bits.

A state of W words is a column of W uint32; n states are an array (W, n). A matrix M is an array (32 W, W): row i is the
image of the state that has only bit i % 32 of word i // 32. So M s is the xor of the rows whose bits are set in s.
Powers of one matrix commute, hence their order never matters here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from .arrays import Words

CHUNK = 4096
"""States that are multiplied at a time, so that they stay in a processor's cache."""


def powers(step: Callable[[Words], None], words: int) -> tuple[Callable[[int], Words], Callable[[Words, int], Words]]:
    """The functions `matrix` and `jump` of a linear `step`, which advances states (words, n) in place by one step.

    matrix(k) is the matrix of 2^k steps, (32 words, words). jump(states, k) gives new states (words, n), 2^k steps
    later. Each matrix is computed once, as the square of the previous one.
    """

    @cache
    def matrix(log2: int) -> Words:
        if log2 == 0:
            images = np.kron(np.eye(words, dtype=np.uint32), np.uint32(1) << np.arange(32, dtype=np.uint32))
            step(images)
            return np.ascontiguousarray(images.T)
        half = matrix(log2 - 1)
        return np.ascontiguousarray(_apply(_byte_tables(half), np.ascontiguousarray(half.T)).T)

    @cache
    def tables(log2: int) -> Words:
        return _byte_tables(matrix(log2))

    return matrix, lambda states, log2: _apply(tables(log2), states)


def _byte_tables(matrix: Words) -> Words:
    """The image of every value of every byte, (bytes of a state, 256, words): a product takes one look-up a byte."""
    return spanned(matrix.reshape(-1, 8, matrix.shape[1]))


def spanned(basis: Words) -> Words:
    """Tables (n, 2^bits, ...) for a basis (n, bits, ...): entry i is the xor of the basis elements whose bits i has."""
    tables = np.zeros((len(basis), 1 << basis.shape[1], *basis.shape[2:]), np.uint32)
    for bit in range(basis.shape[1]):
        tables[:, 1 << bit : 2 << bit] = tables[:, : 1 << bit] ^ basis[:, bit, None]
    return tables


def _apply(tables: Words, states: Words) -> Words:
    images = np.empty_like(states)
    for first in range(0, states.shape[1], CHUNK):
        chunk = slice(first, first + CHUNK)
        rows = np.zeros((states[:, chunk].shape[1], len(states)), np.uint32)
        for index, table in enumerate(tables):
            word, byte = divmod(index, 4)
            rows ^= table.take((states[word, chunk] >> np.uint32(8 * byte)) & np.uint32(255), axis=0)
        images[:, chunk] = rows.T
    return images
