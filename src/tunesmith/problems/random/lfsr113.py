"""LFSR113: four combined Tausworthe generators of 31, 29, 28 and 25 bits (L'Ecuyer, Math. Comp. 68 (1999) 261).

State: z1, z2, z3, z4, one word a component; the random word is their xor after the step. A component whose state has no
bit above its lowest 1, 3, 4 or 7 would stay zero for ever, hence L'Ecuyer's lower limits of 2, 8, 16 and 128.

Seeding: the components are the seed shifted right by 0, 16, 32 and 48 and truncated to 32 bits. If a component is below
its limit, the limit is added, so that seed 0 gives (2, 8, 16, 128), rocRAND's default. rocRAND's `set_seed` shifts in
the same way but corrects only the first two components, which leaves half of the generator at zero for every seed below
2^32. Here all four are corrected, as in its `set_seed_uint4`. The lowest bits named above never matter: seeds 0 to 3
give the same stream. Engine e is 2^55 e steps ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import gf2
from .arrays import Words


@dataclass(frozen=True, slots=True)
class _Tausworthe:
    """b = ((z << q) ^ z) >> (width - s); z = (z without its lowest 32 - width bits) << s, with b below."""

    q: int
    s: int
    width: int

    @property
    def dead_bits(self) -> int:
        return 32 - self.width


COMPONENTS = (_Tausworthe(6, 18, 31), _Tausworthe(2, 2, 29), _Tausworthe(13, 7, 28), _Tausworthe(3, 13, 25))


def _rows(*numbers: int) -> Words:
    """A number for each component, in the shape that goes with states."""
    return np.array(numbers, np.uint32)[:, None]


_Q = _rows(*(component.q for component in COMPONENTS))
_S = _rows(*(component.s for component in COMPONENTS))
_DOWN = _rows(*(component.width - component.s for component in COMPONENTS))
_ALIVE = _rows(*(0xFFFFFFFF >> component.dead_bits << component.dead_bits for component in COMPONENTS))


def _advance(states: Words) -> None:
    """All components at once."""
    below = ((states << _Q) ^ states) >> _DOWN
    states[:] = ((states & _ALIVE) << _S) ^ below


_matrix, _jump = gf2.powers(_advance, 4)


class Lfsr113:
    """An `Engine` (`engines.py`)."""

    subsequence_log2 = 55
    matrix, jump = staticmethod(_matrix), staticmethod(_jump)

    def seeded(self, seed: int) -> Words:
        pieces = [(seed >> shift) & 0xFFFFFFFF for shift in (0, 16, 32, 48)]
        least = [1 << component.dead_bits for component in COMPONENTS]
        components = [piece if piece >= limit else piece + limit for piece, limit in zip(pieces, least, strict=True)]
        return np.array(components, np.uint32)[:, None]

    def step(self, states: Words) -> Words:
        _advance(states)
        words: Words = np.bitwise_xor.reduce(states, axis=0)
        return words
