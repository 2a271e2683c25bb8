"""MTGP32 of period 2^11213 - 1: Mersenne Twisters for graphics processors (Saito and Matsumoto, ACM TOMS 39 (2013) 12).

Engine e is lane e % 256 of parameter set e // 256. A set makes 256 words at once; lane l gives words l, l + 256, ...
With a state x[0..350] and word n:
  x[n + 351] = y ^ recursion[y & 15],  y = v ^ (v << shift1) ^ (x[n + position] >> shift2),
                                       v = (x[n] & mask) ^ x[n + 1]
  word n     = x[n + 351] ^ tempering[u & 15],  u = (t ^ (t >> 8)), t = s ^ (s >> 16), s = x[n + position - 1].

The 512 parameter sets in `mtgp32_11213.npz` were found by the authors' dynamic creator (MTGP 1.1,
`mtgp32dc-param-11213.c`; copyright 2009-2011 Mutsuo Saito, Makoto Matsumoto, Hiroshima University and University of
Tokyo, 3-clause BSD licence) and taken from rocRAND's `rocrand_mtgp32_11213.h`: only the numbers. The tables are linear
over the field of two elements, so only their entries 1, 2, 4 and 8 are kept. Shifts and mask are the same for all sets.

Seeding after rocRAND's `rocrand_mtgp32.h`: set b starts from the xor of the seed's halves plus b + 1. State: x[0..350].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np

from .arrays import Int64, Words
from .gf2 import spanned

STATE_WORDS = 351
LANES = 256


@dataclass(frozen=True, slots=True, eq=False)
class Mtgp32Parameters:
    """The parameters of every set (one a row), and the parameters that all sets share. All arrays are uint32."""

    position: Words
    """(sets,), between 3 and 93, so that no lane needs a word that another lane makes in the same step."""
    recursion: Words
    """(sets, 16)"""
    tempering: Words
    """(sets, 16)"""
    shift1: int
    shift2: int
    mask: int

    def __len__(self) -> int:
        return len(self.position)


@cache
def mtgp32_parameters() -> Mtgp32Parameters:
    """The 512 parameter sets."""
    with as_file(files(__package__) / "mtgp32_11213.npz") as path, np.load(path) as data:
        return Mtgp32Parameters(
            data["position"].astype(np.uint32),
            spanned(data["recursion"]),
            spanned(data["tempering"]),
            *(int(data[name]) for name in ("shift1", "shift2", "mask")),
        )


class _Sets:
    def __init__(self, states: Words, numbers: Int64) -> None:
        sets = mtgp32_parameters()
        self._position = sets.position[numbers].astype(np.int64)
        self._recursion, self._tempering = sets.recursion[numbers].ravel(), sets.tempering[numbers].ravel()
        self._shift1, self._shift2, self._mask = (np.uint32(n) for n in (sets.shift1, sets.shift2, sets.mask))
        self._first_entry = 16 * np.arange(len(numbers), dtype=np.uint32)
        columns = self._position[:, None] + np.arange(LANES)
        self._picked = columns + (STATE_WORDS + LANES) * np.arange(len(numbers))[:, None]
        # A row is a state and room for the words of one step; `advance` first drops the words of the previous step.
        self._x = np.zeros((len(numbers), STATE_WORDS + LANES), np.uint32)
        self._x[:, LANES:] = states.T

    def advance(self) -> None:
        x = self._x
        x[:, :STATE_WORDS] = x[:, LANES:].copy()
        y = x[:, :LANES] & self._mask
        y ^= x[:, 1 : LANES + 1]
        y ^= y << self._shift1
        y ^= x.take(self._picked) >> self._shift2
        y ^= self._recursion.take((y & np.uint32(15)) + self._first_entry[:, None])
        x[:, STATE_WORDS:] = y

    def read(self, row: Int64, lane: Int64) -> Words:
        t = self._x[row, self._position[row] - 1 + lane]
        t ^= t >> np.uint32(16)
        t ^= t >> np.uint32(8)
        words: Words = self._x[row, STATE_WORDS + lane]
        words ^= self._tempering[(t & np.uint32(15)) + self._first_entry[row]]
        return words


class Mtgp32:
    """A `LaneGenerator` (`lanes.py`) whose rows are parameter sets and whose blocks are steps of 256 lanes."""

    lanes = LANES
    block_words = LANES
    group = 64

    def initial_states(self, seed: int, numbers: Int64) -> Words:
        table = mtgp32_parameters().recursion[numbers]
        hidden = table[:, 4] ^ (table[:, 8] << np.uint32(16))
        filler = hidden + (hidden >> np.uint32(16))
        filler += filler >> np.uint32(8)
        states = np.repeat(((filler & np.uint32(255)) * np.uint32(0x01010101))[None], STATE_WORDS, axis=0)
        states[0] = numbers.astype(np.uint32) + np.uint32(((seed ^ seed >> 32) + 1) & 0xFFFFFFFF)
        states[1] = hidden
        for i in range(1, STATE_WORDS):
            before = states[i - 1]
            states[i] ^= (before ^ (before >> np.uint32(30))) * np.uint32(1812433253) + np.uint32(i)
        return states

    def rows(self, seed: int, numbers: Int64) -> _Sets:
        return _Sets(self.initial_states(seed, numbers), numbers)
