"""XORWOW: Marsaglia's xorshift of 160 bits plus a Weyl sequence (J. Stat. Softw. 8 (2003), no. 14).

State: x0, x1, x2, x3, x4, d. A step makes t = x0 ^ (x0 >> 2), moves x1..x4 down, sets x4 to
x4 ^ (x4 << 4) ^ t ^ (t << 1) and adds 362437 to d; the random word is x4 + d.

Seeding after rocRAND's `rocrand_xorwow.h`: Marsaglia's state is changed by t0 and t1, odd multiples of the seed's
halves after a xor with constants. Engine e is 2^67 e steps ahead; d is the same for all, since 2^32 divides 2^67.
"""

from __future__ import annotations

import numpy as np

from . import gf2
from .arrays import Words

WEYL = 362437
_MASK = 0xFFFFFFFF
MARSAGLIA = (123456789, 362436069, 521288629, 88675123, 5783321, 6615241)
"""The state that Marsaglia's article starts from."""


def _shift(x: Words) -> None:
    fresh = x[0] ^ (x[0] >> np.uint32(2))
    fresh ^= fresh << np.uint32(1)
    fresh ^= x[4] ^ (x[4] << np.uint32(4))
    x[:4] = x[1:5]
    x[4] = fresh


_matrix, _jump = gf2.powers(_shift, 5)


class Xorwow:
    """An `Engine` (`engines.py`). Its matrices are those of x0..x4 alone; a jump adds the steps' multiple to d."""

    subsequence_log2 = 67
    matrix = staticmethod(_matrix)

    def seeded(self, seed: int) -> Words:
        t0 = 1228688033 * ((seed & _MASK) ^ 0x2C7F967F)
        t1 = 2073658381 * ((seed >> 32) ^ 0xA03697CB)
        x0, x1, x2, x3, x4, d = MARSAGLIA
        t0, t1 = t0 & _MASK, t1 & _MASK
        words = (x0 + t0, x1 ^ t0, x2 + t1, x3 ^ t1, x4 + t0, d + t0 + t1)
        return np.array([[word & _MASK] for word in words], np.uint32)

    def jump(self, states: Words, log2: int) -> Words:
        counted = states[5:] + np.uint32((WEYL << log2) & _MASK)
        return np.concatenate([_jump(states[:5], log2), counted])

    def step(self, states: Words) -> Words:
        _shift(states)
        states[5] += np.uint32(WEYL)
        words: Words = states[4] + states[5]
        return words
