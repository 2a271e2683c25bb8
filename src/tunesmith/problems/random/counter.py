"""Philox and Threefry: each block of words is a function of its number (Salmon, Moraes, Dror and Shaw, SC11).

`philox` and `threefry` are the functions of Random123 for 2 or 4 components of 32 or 64 bits and any number of rounds.
`counter_words` numbers their output as one sequence of 32-bit words; a component of 64 bits gives its low half first.
The block number is in the counter's low components, and the keys are rocRAND's (`COUNTERS`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Int64, Words, distinct

Components = NDArray[np.unsignedinteger[Any]]

_PHILOX: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...]]] = {
    (2, 32): ((0xD256D193,), (0x9E3779B9,)),
    (4, 32): ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    (2, 64): ((0xD2B74407B1CE6E93,), (0x9E3779B97F4A7C15,)),
    (4, 64): ((0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)),
}
"""Multipliers and key increments by components and bits."""

_THREEFRY: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {
    (2, 32): ((13,), (15,), (26,), (6,), (17,), (29,), (16,), (24,)),
    (4, 32): ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)),
    (2, 64): ((16,), (42,), (12,), (31,), (16,), (32,), (24,), (21,)),
    (4, 64): ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)),
}
"""Rotations of the pairs in eight successive rounds, by components and bits."""

_PARITY = {32: 0x1BD11BDA, 64: 0x1BD11BDAA9FC1A22}


def philox(counter: Components, key: Components, rounds: int) -> Components:
    """Blocks (W, n) for counters (W, n) and a key (W / 2,) of one dtype, uint32 or uint64."""
    multipliers, increments = _PHILOX[len(counter), counter.itemsize * 8]
    x, word = list(counter), counter.dtype.type
    modulus = 1 << counter.itemsize * 8
    keys = [int(part) for part in key]
    for _ in range(rounds):
        products = [_product(part, multiplier) for part, multiplier in zip(x[::2], multipliers, strict=True)]
        # The high half of a product goes to the next pair, cyclically.
        rotated = zip(products[1:] + products[:1], x[1::2], keys, strict=True)
        x = [part for (high, low), odd, k in rotated for part in (high ^ odd ^ word(k), low)]
        keys = [(k + increment) % modulus for k, increment in zip(keys, increments, strict=True)]
    return np.stack(x)


def _product(x: Components, multiplier: int) -> tuple[Components, Components]:
    """The high and the low half of the product, in the width of `x`."""
    if x.itemsize == 4:
        whole = x.astype(np.uint64) * np.uint64(multiplier)
        return (whole >> np.uint64(32)).astype(np.uint32), whole.astype(np.uint32)
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    x1, x0, m1, m0 = x >> half, x & low_half, np.uint64(multiplier >> 32), np.uint64(multiplier & 0xFFFFFFFF)
    middle = x1 * m0 + (x0 * m0 >> half)
    crossed = x0 * m1 + (middle & low_half)
    return x1 * m1 + (middle >> half) + (crossed >> half), x * np.uint64(multiplier)


def threefry(counter: Components, key: Components, rounds: int) -> Components:
    """Blocks (W, n) for counters (W, n) and a key (W,) of one dtype, uint32 or uint64."""
    bits, components = counter.itemsize * 8, len(counter)
    rotations, word = _THREEFRY[components, bits], counter.dtype.type
    keys = [int(part) for part in key]
    keys.append(int(np.bitwise_xor.reduce(key)) ^ _PARITY[bits])
    x = [part + word(k) for part, k in zip(counter, keys, strict=False)]
    for number in range(rounds):
        # With four components, the odd ones change partners every other round.
        partners = (1, 3) if number % 2 == 0 else (3, 1)
        for pair, turn in enumerate(rotations[number % 8]):
            even, odd = 2 * pair, partners[pair] if components == 4 else 1
            x[even] = x[even] + x[odd]
            x[odd] = (x[odd] << word(turn) | x[odd] >> word(bits - turn)) ^ x[even]
        if number % 4 == 3:
            injection = number // 4 + 1
            for index in range(components):
                x[index] = x[index] + word(keys[(injection + index) % (components + 1)])
            x[-1] = x[-1] + word(injection)
    return np.stack(x)


@dataclass(frozen=True, slots=True)
class Counter:
    """A generator that is a function of a counter. Its key is the seed shifted right by each of `shifts`."""

    threefry: bool
    components: int
    bits: int
    rounds: int
    shifts: tuple[int, ...]

    @property
    def block_words(self) -> int:
        return self.components * self.bits // 32

    def blocks(self, seed: int, first: int, numbers: Int64) -> Words:
        """The words (numbers, block_words) of the blocks `first + numbers`, modulo 2^64."""
        kind: np.dtype[np.unsignedinteger[Any]] = np.dtype(np.uint32 if self.bits == 32 else np.uint64)
        key = np.array([seed >> shift & (1 << self.bits) - 1 for shift in self.shifts], kind)
        number = numbers.astype(np.uint64) + np.uint64(first)
        counter = np.zeros((self.components, len(numbers)), kind)
        counter[0] = number.astype(kind)
        if self.bits == 32:
            counter[1] = number >> np.uint64(32)
        outputs = (threefry if self.threefry else philox)(counter, key, self.rounds)
        halves = [outputs >> kind.type(shift) for shift in range(0, self.bits, 32)]
        return np.stack(halves, axis=1).reshape(-1, len(numbers)).T.astype(np.uint32)


COUNTERS = {
    "philox4_32_10": Counter(False, 4, 32, 10, (0, 32)),
    "threefry2_32_20": Counter(True, 2, 32, 20, (0, 32)),
    "threefry4_32_20": Counter(True, 4, 32, 20, (0, 16, 32, 48)),
    "threefry2_64_20": Counter(True, 2, 64, 20, (0, 32)),
    "threefry4_64_20": Counter(True, 4, 64, 20, (0, 16, 32, 48)),
}
"""The keys are those of rocRAND's `rocrand_philox4x32_10.h` and `rocrand_threefry*_20.h`: the seed, shifted and
truncated to the component's width. So neighbouring key words of a Threefry of four components overlap.

rocRAND's Threefry of four components (`rocrand_threefry4_impl.h`, as of 2025) changes partners every second round; the
article and Random123 do so every round. The numbers here are the published ones; rocRAND's are not."""


def counter_words(counter: Counter, seed: int, offset: int, vectors: Int64, width: int) -> Words:
    """Words (vectors, width): word i of vector j is word `offset + j width + i` of the sequence."""
    first, skipped = divmod(offset, counter.block_words)
    number = skipped + vectors[:, None] * width + np.arange(width)
    block, index = np.divmod(number, counter.block_words)
    blocks, which = distinct(block.ravel())
    return counter.blocks(seed, first, blocks)[which.reshape(block.shape), index]
