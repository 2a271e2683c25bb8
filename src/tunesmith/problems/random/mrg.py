"""MRG32k3a and MRG31k3p, which combine two recurrences of order three.

L'Ecuyer, Oper. Res. 47 (1999) 159, and L'Ecuyer and Touzin, Winter Simulation Conf. (2000) 683.

State: three words of the first recurrence, then three of the second. MRG32k3a keeps them oldest first, MRG31k3p newest
first (rocRAND's layouts). With newest values p1 and p2 a step gives z = p1 - p2 modulo m1, in [1, m1]. The random word
is z - 1 times `stretch` in double precision, truncated: so rocRAND gets the full range of 32 bits.

Seeding after rocRAND's `rocrand_mrg32k3a.h` and `rocrand_mrg31k3p.h`: with x = (low half of the seed) ^ 0x55555555 and
y = (high half) ^ 0xAAAAAAAA the first recurrence starts from (x, y, x) times the seed modulo m1, the second from
(y, x, y) times the seed modulo m2; seed 0 stands for 12345. The products are exact for seeds below 2^32. For larger
seeds rocRAND's products lose their bits from 2^64 on, and so do the products here (`multiply`). A residue that rocRAND
leaves unreduced is reduced here. A recurrence that would start from three zeros, and then give only zeros, starts from
12345 three times. Engine e is 2^76 e steps (MRG32k3a) or 2^72 e steps (MRG31k3p) ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from .arrays import Words

_HALF = 0xFFFFFFFF
_WHOLE = 0xFFFFFFFFFFFFFFFF
DEFAULT_SEED = 12345

Residues = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """x[n] = lags[0] x[n-1] + lags[1] x[n-2] + lags[2] x[n-3] modulo `modulus`."""

    modulus: int
    lags: tuple[int, int, int]

    def next(self, newest_first: tuple[Words, Words, Words]) -> Residues:
        """The next value of each column. |lag| < 2^23, so a sum of three products stays below 2^64."""
        total = np.zeros(newest_first[0].shape, np.uint64)
        for lag, x in zip(self.lags, newest_first, strict=True):
            if lag:
                value = x.astype(np.uint64)
                total += np.uint64(abs(lag)) * (value if lag > 0 else np.uint64(self.modulus) - value)
        total %= np.uint64(self.modulus)
        return total


@dataclass(frozen=True)
class Mrg:
    """An `Engine` (`engines.py`). `ages` are the indices of a recurrence's newest, middle and oldest value.

    `matrix(k)` is (2, 3, 3), a matrix for each recurrence: row r holds the coefficients of the new word r, 2^k steps
    later.
    """

    recurrences: tuple[Recurrence, Recurrence]
    ages: tuple[int, int, int]
    subsequence_log2: int
    stretch: float
    multiply: Callable[[int, int, int], int]

    def seeded(self, seed: int) -> Words:
        seed = seed or DEFAULT_SEED
        x, y = (seed & _HALF) ^ 0x55555555, (seed >> 32) ^ 0xAAAAAAAA
        words: list[int] = []
        for recurrence, factors in zip(self.recurrences, ((x, y, x), (y, x, y)), strict=True):
            m = recurrence.modulus
            start = [self.multiply(factor, seed, m) % m for factor in factors]
            words += start if any(start) else [DEFAULT_SEED] * 3
        return np.array(words, np.uint32)[:, None]

    def matrix(self, log2: int) -> Words:
        return np.stack([_power(recurrence, self.ages, log2) for recurrence in self.recurrences]).astype(np.uint32)

    def jump(self, states: Words, log2: int) -> Words:
        halves = zip(self.recurrences, (states[:3], states[3:]), strict=True)
        return np.concatenate([_product_of(_power(r, self.ages, log2), half, r.modulus) for r, half in halves])

    def step(self, states: Words) -> Words:
        return ((self.draw(states) - np.uint64(1)) * np.float64(self.stretch)).astype(np.uint32)

    def draw(self, states: Words) -> Residues:
        """z of each state, in [1, m1]; advances the states in place."""
        p1, p2 = (self._advance(r, half) for r, half in zip(self.recurrences, (states[:3], states[3:]), strict=True))
        return np.where(p1 > p2, p1 - p2, p1 + np.uint64(self.recurrences[0].modulus) - p2)

    def _advance(self, recurrence: Recurrence, x: Words) -> Residues:
        newest, middle, oldest = self.ages
        fresh = recurrence.next((x[newest], x[middle], x[oldest]))
        x[oldest], x[middle], x[newest] = x[middle], x[newest].copy(), fresh
        return fresh


@cache
def _power(recurrence: Recurrence, ages: tuple[int, int, int], log2: int) -> Residues:
    """The matrix of 2^log2 steps of one recurrence."""
    if log2:
        half = _power(recurrence, ages, log2 - 1)
        return _product_of(half, half, recurrence.modulus).astype(np.uint64)
    newest, middle, oldest = ages
    matrix = np.zeros((3, 3), np.uint64)
    matrix[newest, list(ages)] = [lag % recurrence.modulus for lag in recurrence.lags]
    matrix[middle, newest] = matrix[oldest, middle] = 1
    return matrix


def _product_of(matrix: Residues, columns: NDArray[np.unsignedinteger], modulus: int) -> Words:
    """`matrix` (3, 3) times `columns` (3, n), with every entry below `modulus` < 2^32."""
    m = np.uint64(modulus)
    total = np.zeros(columns.shape, np.uint64)
    for index, row in enumerate(columns.astype(np.uint64)):
        total += matrix[:, index, None] * row % m
    return (total % m).astype(np.uint32)


def _multiply_at_once(factor: int, seed: int, modulus: int) -> int:
    """rocRAND's product for MRG31k3p."""
    return (factor * seed & _WHOLE) % modulus


def _multiply_in_two_pieces(factor: int, seed: int, modulus: int) -> int:
    """rocRAND's product for MRG32k3a: the factor in pieces of 15 and 17 bits, reduced by folding, kept to 32 bits."""
    high, low = divmod(factor, 1 << 17)
    return (
        _folded((_folded(high * seed & _WHOLE, modulus) << 17) + _folded(low * seed & _WHOLE, modulus), modulus) & _HALF
    )


def _folded(value: int, modulus: int) -> int:
    """`value` < 2^64 minus a multiple of `modulus`; as in rocRAND, folded once for m1 = 2^32 - 209, otherwise twice."""
    excess = (1 << 32) - modulus
    for _ in range(1 if excess == 209 else 2):
        value = excess * (value >> 32) + (value & _HALF)
    return value - modulus if value >= modulus else value


MRG32K3A = Mrg(
    recurrences=(Recurrence(4294967087, (0, 1403580, -810728)), Recurrence(4294944443, (527612, 0, -1370589))),
    ages=(2, 1, 0),
    subsequence_log2=76,
    stretch=1.000000048661607,
    multiply=_multiply_in_two_pieces,
)
MRG31K3P = Mrg(
    recurrences=(
        Recurrence(2147483647, (0, 1 << 22, (1 << 7) + 1)),
        Recurrence(2147462579, (1 << 15, 0, (1 << 15) + 1)),
    ),
    ages=(0, 1, 2),
    subsequence_log2=72,
    stretch=2.000000001396983862,
    multiply=_multiply_at_once,
)
