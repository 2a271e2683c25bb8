"""The generators of engines once more: a number at a time, in plain integers, each in another form than the arrays'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

M32 = 0xFFFFFFFF


def xorwow(state: Sequence[int]) -> Iterator[int]:
    """Marsaglia's `xorwow`, whose variables are x, y, z, w, v and d."""
    x, y, z, w, v, d = state
    while True:
        t = x ^ x >> 2
        x, y, z, w = y, z, w, v
        v = (v ^ v << 4 ^ t ^ t << 1) & M32
        d = (d + 362437) & M32
        yield (d + v) & M32


def lfsr113(state: Sequence[int]) -> Iterator[int]:
    """The four lines of L'Ecuyer's article, with its masks."""
    z1, z2, z3, z4 = state
    while True:
        z1 = (z1 & 0xFFFFFFFE) << 18 & M32 ^ (z1 << 6 & M32 ^ z1) >> 13
        z2 = (z2 & 0xFFFFFFF8) << 2 & M32 ^ (z2 << 2 & M32 ^ z2) >> 27
        z3 = (z3 & 0xFFFFFFF0) << 7 & M32 ^ (z3 << 13 & M32 ^ z3) >> 21
        z4 = (z4 & 0xFFFFFF80) << 13 & M32 ^ (z4 << 3 & M32 ^ z4) >> 12
        yield z1 ^ z2 ^ z3 ^ z4


def mrg32k3a(state: Sequence[int]) -> Iterator[int]:
    """As the article has it: signed products, remainders, differences; 1 .. m1."""
    m1, m2 = 2**32 - 209, 2**32 - 22853
    x, y = list(state[:3]), list(state[3:])
    while True:
        x.append((1403580 * x[-2] - 810728 * x[-3]) % m1)
        y.append((527612 * y[-1] - 1370589 * y[-3]) % m2)
        yield (x[-1] - y[-1]) % m1 or m1


def mrg31k3p(state: Sequence[int]) -> Iterator[int]:
    """L'Ecuyer and Touzin's products by powers of two as shifts of halves; 1 .. m1."""
    m1, m2 = 2**31 - 1, 2**31 - 21069
    (x1, x2, x3), (y1, y2, y3) = state[:3], state[3:]

    def rotated(value: int, shift: int) -> int:
        return (value << shift & m1) + (value >> 31 - shift)

    def scaled(value: int) -> int:
        return ((value & 0xFFFF) << 15) + 21069 * (value >> 16)

    while True:
        x1, x2, x3 = (rotated(x2, 22) + rotated(x3, 7) + x3) % m1, x1, x2
        y1, y2, y3 = (scaled(y1) + scaled(y3) + y3) % m2, y1, y2
        yield (x1 - y1) % m1 or m1


def stretched(numbers: Iterator[int], factor: float) -> Iterator[int]:
    """rocRAND's step from 1 .. m to 32 bits."""
    return (int((number - 1) * factor) for number in numbers)


def mt19937(key: int | list[int]) -> Iterator[int]:
    """NumPy's legacy generator: `init_genrand` of an integer, `init_by_array` of a list."""
    generator = np.random.RandomState(key)
    while True:
        yield from (int(word) for word in generator.randint(0, 1 << 32, 1024, dtype=np.uint32))


def mtgp32(state: Sequence[int], position: int, recursion: Sequence[int], tempering: Sequence[int]) -> Iterator[int]:
    """One word after the other, with the shifts and the mask that all sets share."""
    x = list(state)
    for n in range(len(x) * 1000):
        v = x[n] & 0xFFF80000 ^ x[n + 1]
        y = (v ^ v << 13) & M32 ^ x[n + position] >> 4
        x.append(y ^ recursion[y & 15])
        t = x[n + position - 1]
        t ^= t >> 16
        yield x[-1] ^ tempering[(t ^ t >> 8) & 15]


SCALARS = {
    "xorwow": xorwow,
    "lfsr113": lfsr113,
    "mrg32k3a": lambda state: stretched(mrg32k3a(state), 1.000000048661607),
    "mrg31k3p": lambda state: stretched(mrg31k3p(state), 2.000000001396983862),
}
"""From a state's words to the words of its stream, for engines on one sequence."""
