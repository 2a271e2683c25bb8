"""The tables that `initialise` of each engine's source reads: matrices for skipping ahead, or parameters."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.random.generators import MOST_SUBSEQUENCES
from tunesmith.problems.random.streams import jump_matrices, mtgp32_parameters

WORD_POWERS, SUBSEQUENCE_POWERS = 64, MOST_SUBSEQUENCES.bit_length() - 1
"""The matrices skip 2^k words, and 2^k subsequences, for k below these numbers."""

WEYL = 362437
"""The number that a step of xorwow adds to d."""


@cache
def jumps(generator: str) -> NDArray[np.uint32]:
    """The table (n,) of a generator, read-only; the generator's file in `source/` describes its layout.

    xorwow, lfsr113, mrg32k3a, mrg31k3p: one matrix after the other, those of 2^0 ... 2^63 words before those of 2^0 ...
    2^23 subsequences. mtgp32: the parameters, set by set. mt19937: a single zero, because it needs no table.
    """
    if generator == "mt19937":
        table = np.zeros(1, np.uint32)
    else:
        table = _parameters() if generator == "mtgp32" else _powers(generator)
    table.flags.writeable = False
    return table


def _powers(generator: str) -> NDArray[np.uint32]:
    words = jump_matrices(generator, "word", WORD_POWERS)
    subsequences = jump_matrices(generator, "subsequence", SUBSEQUENCE_POWERS)
    matrices = np.concatenate([words, subsequences])
    if generator == "lfsr113":
        # A component's matrix has only its own bits.
        blocks: NDArray[np.uint32] = np.einsum("pcbc->pcb", matrices.reshape(-1, 4, 32, 4))
        return blocks.ravel()
    if generator == "xorwow":
        rows = matrices.transpose(0, 2, 1).reshape(len(matrices), -1)
        added = np.zeros((len(matrices), 1), np.uint32)
        added[:WORD_POWERS, 0] = [WEYL << power & 0xFFFFFFFF for power in range(WORD_POWERS)]
        return np.hstack([rows, added]).ravel()
    return matrices.ravel()


def _parameters() -> NDArray[np.uint32]:
    sets = mtgp32_parameters()
    shared = np.array([sets.shift1, sets.shift2, sets.mask], np.uint32)
    repeated = np.broadcast_to(shared, (len(sets), len(shared)))
    return np.hstack([sets.position[:, None], repeated, sets.recursion, sets.tempering]).ravel()
