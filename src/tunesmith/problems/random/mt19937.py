"""MT19937: many Mersenne Twisters side by side (Matsumoto and Nishimura, ACM TOMACS 8 (1998) 3; their `mt19937ar.c`).

Engine e is lane e % 8 of generator e // 8 and gives every eighth word of this generator. Generator 0 is `std::mt19937`
of the seed if the seed is below 2^32. Every other generator is initialised from the key (low half of the seed, high
half, generator number). rocRAND puts its generators 2^1000 steps apart on one sequence instead, with tables of jump
polynomials.

State: 624 words, as seeding leaves them: a twist comes before the first word.
"""

from __future__ import annotations

import numpy as np

from .arrays import Int64, Words

STATE_WORDS = 624
_MIDDLE = 397
_MULTIPLIER = 1812433253


def _from_seed(seed: int) -> Words:
    words = [seed]
    for i in range(1, STATE_WORDS):
        words.append((_MULTIPLIER * (words[-1] ^ words[-1] >> 30) + i) & 0xFFFFFFFF)
    return np.array(words, np.uint32)


def _from_keys(seed: int, numbers: Int64) -> Words:
    key = [np.full(len(numbers), half, np.uint32) for half in (seed & 0xFFFFFFFF, seed >> 32)]
    key.append(numbers.astype(np.uint32))
    added = [part + np.uint32(index) for index, part in enumerate(key)]
    states = np.repeat(_from_seed(19650218)[:, None], len(numbers), axis=1)
    i = 1
    for turn in range(STATE_WORDS):
        states[i] = (states[i] ^ _mixed(states[i - 1], 1664525)) + added[turn % 3]
        i = _following(states, i)
    for _ in range(STATE_WORDS - 1):
        states[i] = (states[i] ^ _mixed(states[i - 1], 1566083941)) - np.uint32(i)
        i = _following(states, i)
    states[0] = 0x80000000
    return states


def _mixed(word: Words, multiplier: int) -> Words:
    mixed: Words = (word ^ (word >> np.uint32(30))) * np.uint32(multiplier)
    return mixed


def _following(states: Words, i: int) -> int:
    if i + 1 < STATE_WORDS:
        return i + 1
    states[0] = states[-1]
    return 1


class _Twisters:
    def __init__(self, states: Words) -> None:
        self._x = states

    def advance(self) -> None:
        x, lag = self._x, STATE_WORDS - _MIDDLE
        # Each stretch reads only words that an earlier stretch has replaced, or that no stretch has replaced yet.
        for first, last in ((0, lag), (lag, 2 * lag), (2 * lag, STATE_WORDS - 1)):
            source = first + _MIDDLE if first == 0 else first - lag
            x[first:last] = x[source : source + last - first] ^ _twisted(x[first:last], x[first + 1 : last + 1])
        x[-1] = x[_MIDDLE - 1] ^ _twisted(x[-1], x[0])

    def read(self, row: Int64, lane: Int64) -> Words:
        y = self._x[lane, row]
        y ^= y >> np.uint32(11)
        y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
        y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
        y ^= y >> np.uint32(18)
        return y


def _twisted(upper: Words, lower: Words) -> Words:
    joined = (upper & np.uint32(0x80000000)) | (lower & np.uint32(0x7FFFFFFF))
    joined >>= np.uint32(1)
    joined ^= (lower & np.uint32(1)) * np.uint32(0x9908B0DF)
    return joined


class Mt19937:
    """A `LaneGenerator` (`lanes.py`) whose rows are generators and whose blocks are their states."""

    lanes = 8
    block_words = STATE_WORDS
    group = 1024

    def initial_states(self, seed: int, numbers: Int64) -> Words:
        states = _from_keys(seed, numbers)
        if seed < 1 << 32:
            states[:, numbers == 0] = _from_seed(seed)[:, None]
        return states

    def rows(self, seed: int, numbers: Int64) -> _Twisters:
        return _Twisters(self.initial_states(seed, numbers))
