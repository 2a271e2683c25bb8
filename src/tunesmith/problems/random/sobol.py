"""Sobol' points in Gray-code order, plain and scrambled, of 32 and 64 bits.

Point n of a dimension is the xor of the direction numbers V[k] at the bits k of n ^ (n >> 1), and of the digital shift.
Divided by 2^bits it is a number in [0, 1). Directions: Joe and Kuo (SIAM J. Sci. Comput. 30 (2008) 2635), whose
primitive polynomials and first values, `new-joe-kuo-6.21201`, SciPy ships. Recurrence: Bratley and Fox (ACM TOMS 14
(1988) 88). Order: Antonov and Saleev (USSR Comput. Math. 19 (1979) 252).

Scrambling (Matousek, J. Complexity 14 (1998) 527): each dimension's directions are multiplied by a random lower
triangular matrix over the field of two elements with a unit diagonal, and its points are shifted by a random number.
Matrix and shift come from Philox4x32-10, keyed with the two halves of the seed. Dimension d draws words 0, 1, 2, ...
from the counters (0, d, bits, 0x536F626F), (1, d, bits, ...), ...; with 64 bits, two words make a number, the low word
first. Number c, for c below `bits`, gives the matrix's column c below its diagonal (the image of the c-th most
significant bit is that bit and the number's bits below it). Number `bits` is the shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import UserError

from .arrays import Int64
from .counter import philox

Uint64 = NDArray[np.uint64]
Fractions = NDArray[np.unsignedinteger[Any]]

_DOMAIN = 0x536F626F
"""`Sobo` in ASCII. It keeps the draws apart from the words of the Philox generator, whose counters end in zeros."""


@dataclass(frozen=True, slots=True)
class Sobol:
    bits: int
    scrambled: bool

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        return np.dtype(np.uint32 if self.bits == 32 else np.uint64)

    def directions(self, seed: int, dimensions: Int64) -> Fractions:
        """The direction numbers (dimensions, bits) of the given dimensions, counted from 0."""
        plain = _directions(dimensions, self.bits)
        return (self._scramble(plain, seed, dimensions) if self.scrambled else plain).astype(self.dtype)

    def shift(self, seed: int, dimensions: Int64) -> Fractions:
        """The digital shift (dimensions,) that every point is xored with; zeros without scrambling."""
        if not self.scrambled:
            return np.zeros(len(dimensions), self.dtype)
        shifts: Fractions = self._draws(seed, dimensions)[self.bits].astype(self.dtype)
        return shifts

    def points(self, seed: int, offset: int, index: Int64, dimension: Int64) -> Fractions:
        """Points `offset + index`, modulo 2^bits, of the given dimensions; all arrays have the same shape."""
        numbers, which = np.unique(dimension, return_inverse=True)
        directions, which = self.directions(seed, numbers), which.reshape(dimension.shape)
        n = index.astype(np.uint64) + np.uint64(offset % (1 << 64))
        if self.bits == 32:
            n &= np.uint64(0xFFFFFFFF)
        gray = n ^ (n >> np.uint64(1))
        points = self.shift(seed, numbers)[which]
        for k in range(int(gray.max()).bit_length()):
            used = gray >> np.uint64(k) & np.uint64(1)
            points ^= directions[which, k] * used.astype(self.dtype)
        return points

    def _draws(self, seed: int, dimensions: Int64) -> Uint64:
        """Random numbers of `bits` bits, of shape (bits + 1, dimensions)."""
        words = self.bits // 32
        blocks = -(-(self.bits + 1) * words // 4)
        counter = np.empty((4, len(dimensions), blocks), np.uint32)
        counter[0], counter[1] = np.arange(blocks), dimensions[:, None]
        counter[2], counter[3] = self.bits, _DOMAIN
        key = np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32)
        drawn = philox(counter.reshape(4, -1), key, 10).reshape(4, len(dimensions), blocks)
        stream = drawn.transpose(2, 0, 1).reshape(4 * blocks, -1)[: (self.bits + 1) * words].astype(np.uint64)
        return stream if words == 1 else stream[::2] | stream[1::2] << np.uint64(32)

    def _scramble(self, plain: Uint64, seed: int, dimensions: Int64) -> Uint64:
        draws, scrambled = self._draws(seed, dimensions), np.zeros_like(plain)
        for column in range(self.bits):
            below = self.bits - 1 - column
            image = draws[column] & np.uint64((1 << below) - 1) | np.uint64(1 << below)
            scrambled ^= (plain >> np.uint64(below) & np.uint64(1)) * image[:, None]
        return scrambled


SOBOLS = {
    "sobol32": Sobol(32, False),
    "sobol64": Sobol(64, False),
    "scrambled_sobol32": Sobol(32, True),
    "scrambled_sobol64": Sobol(64, True),
}


@cache
def _joe_kuo() -> tuple[Int64, Int64]:
    """The polynomials (dimensions,), as the bits of their coefficients, and the first odd values (dimensions, 18)."""
    table = files("scipy") / "stats" / "_sobol_direction_numbers.npz"
    if not table.is_file():
        raise UserError("sobol", "this SciPy has no file of direction numbers", "install SciPy 1.11 to 1.17")
    with as_file(table) as path, np.load(path) as data:
        return data["poly"].astype(np.int64), data["vinit"].astype(np.int64)


def most_dimensions() -> int:
    return len(_joe_kuo()[0])


def _directions(dimensions: Int64, bits: int) -> Uint64:
    """Unscrambled direction numbers (dimensions, bits); the most significant bit of a fraction is bit `bits - 1`."""
    polynomials, first = (table[dimensions] for table in _joe_kuo())
    degrees = np.frexp(polynomials)[1] - 1
    directions = np.empty((len(dimensions), bits), np.uint64)
    for degree in np.unique(degrees):
        rows = degrees == degree
        directions[rows] = _recurred(polynomials[rows], first[rows], int(degree), bits)
    return directions


def _recurred(polynomials: Int64, first: Int64, degree: int, bits: int) -> Uint64:
    """V[k] = V[k - degree] ^ (V[k - degree] >> degree) ^ every V[k - i] with the coefficient of x^(degree - i) one."""
    # The first dimension's polynomial is 1, and all of its odd values are 1.
    first_values = max(degree, 1)
    v = np.zeros((bits, len(polynomials)), np.uint64)
    for k in range(bits):
        if k < first_values or degree == 0:
            v[k] = first[:, min(k, first_values - 1)].astype(np.uint64) << np.uint64(bits - 1 - k)
            continue
        v[k] = v[k - degree] ^ (v[k - degree] >> np.uint64(degree))
        for i in range(1, degree):
            v[k] ^= v[k - i] * (polynomials >> (degree - i) & 1).astype(np.uint64)
    return v.T
