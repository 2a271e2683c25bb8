"""What `initialise` of each engine's source starts from, apart from the seed: matrices to skip by, or parameters."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.random.generators import MOST_SUBSEQUENCES
from tunesmith.problems.random.streams import jump_matrices, mtgp32_parameters

WORD_POWERS, SUBSEQUENCE_POWERS = 64, MOST_SUBSEQUENCES.bit_length() - 1
"""There are matrices of 2^k words and of 2^k subsequences for k below these."""

WEYL = 362437
"""What a step of xorwow adds to d."""


@cache
def jumps(generator: str) -> NDArray[np.uint32]:
    """(n,), read-only; the generator's file in `source/` says what is where.

    xorwow, lfsr113, mrg32k3a, mrg31k3p: one matrix after the other, those of 2^0 ... 2^63 words before those of 2^0 ...
    2^23 subsequences. mtgp32: the parameters, set by set. mt19937: a zero, it needs nothing.
    """
    if generator == "mt19937":
        found = np.zeros(1, np.uint32)
    else:
        found = _parameters() if generator == "mtgp32" else _powers(generator)
    found.flags.writeable = False
    return found


def _powers(generator: str) -> NDArray[np.uint32]:
    words = jump_matrices(generator, "word", WORD_POWERS)
    subsequences = jump_matrices(generator, "subsequence", SUBSEQUENCE_POWERS)
    matrices = np.concatenate([words, subsequences])
    if generator == "lfsr113":
        # Each component's bits concern only itself.
        blocks: NDArray[np.uint32] = np.einsum("pcbc->pcb", matrices.reshape(-1, 4, 32, 4))
        return blocks.ravel()
    if generator == "xorwow":
        rows = matrices.transpose(0, 2, 1).reshape(len(matrices), -1)
        added = np.zeros((len(matrices), 1), np.uint32)
        added[:WORD_POWERS, 0] = [WEYL << power & 0xFFFFFFFF for power in range(WORD_POWERS)]
        return np.hstack([rows, added]).ravel()
    return matrices.ravel()


def _parameters() -> NDArray[np.uint32]:
    known = mtgp32_parameters()
    shared = np.array([known.shift1, known.shift2, known.mask], np.uint32)
    alike = np.broadcast_to(shared, (len(known), len(shared)))
    return np.hstack([known.position[:, None], alike, known.recursion, known.tempering]).ravel()
