"""Generators of many engines on one sequence: which engine gives which vector, and how to be there without walking.

With T engines and `offset` words skipped, engine e has skipped offset // T + (e < offset % T) words of its own stream,
and vector j comes from engine (offset + j) % T: its words are the next j // T * width ... of that stream. This is how
rocRAND deals (`library/src/rng/xorwow.hpp`, `mrg.hpp`, `lfsr113.hpp`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .arrays import Int64, Words, distinct
from .lfsr113 import Lfsr113
from .mrg import MRG31K3P, MRG32K3A
from .xorwow import Xorwow

DENSE = 8
"""Engines are stepped through all their words when these are at most so many times those that are asked for."""


class Engine(Protocol):
    """One sequence with a linear step. n states are an array (words of a state, n), a column each."""

    @property
    def subsequence_log2(self) -> int:
        """Neighbouring engines are 2^this steps apart."""

    def seeded(self, seed: int) -> Words:
        """(words of a state, 1): the state of engine 0."""

    def matrix(self, log2: int) -> Words:
        """Of 2^log2 steps; the class says which layout."""
        ...

    def jump(self, states: Words, log2: int) -> Words:
        """New states, 2^log2 steps later."""

    def step(self, states: Words) -> Words:
        """Advances in place; (n,) words."""


ENGINES: dict[str, Engine] = {
    "xorwow": Xorwow(),
    "mrg32k3a": MRG32K3A,
    "mrg31k3p": MRG31K3P,
    "lfsr113": Lfsr113(),
}


def engine_words(engine: Engine, seed: int, offset: int, engines: int, vectors: Int64, width: int) -> Words:
    """Words (vectors, width)."""
    skipped, start = divmod(offset, engines)
    location = start + vectors
    numbers, which = distinct(location % engines)
    # The engines below `start` have skipped one word more than the others.
    depth = vectors // engines * width + (location % engines < start)
    nearest = int(depth.min())
    states = orbit(engine, _ahead(engine, engine.seeded(seed), skipped + nearest), numbers)
    depth -= nearest
    span = int(depth.max()) + width
    if span * len(numbers) <= DENSE * len(vectors) * width:
        stepped = np.empty((span, len(numbers)), np.uint32)
        for row in stepped:
            row[:] = engine.step(states)
        picked: Words = stepped[depth[:, None] + np.arange(width), which[:, None]]
        return picked
    states = _walk(engine, states[:, which], depth)
    return np.stack([engine.step(states) for _ in range(width)], axis=1)


def states_of(engine: Engine, seed: int, offset: int, engines: int, numbers: Int64) -> Words:
    """(engine numbers, words of a state): where the given engines stand before the first vector of a call."""
    skipped, start = divmod(offset, engines)
    chosen, which = distinct(numbers)
    states = orbit(engine, _ahead(engine, engine.seeded(seed), skipped), chosen)[:, which]
    return np.ascontiguousarray(_walk(engine, states, (numbers < start).astype(np.int64)).T)


def orbit(engine: Engine, origin: Words, numbers: Int64) -> Words:
    """States (words of a state, numbers) of the engines `numbers` (sorted, each once), engine 0 being at `origin`.

    From the highest bit of a number to its lowest: numbers that agree in their first bits share the jumps for these,
    so all of T engines cost T jumps rather than T log2(T) / 2.
    """
    states, known = origin, np.zeros(1, np.int64)
    for bit in reversed(range(int(numbers[-1]).bit_length())):
        heads = numbers >> bit
        heads = heads[np.diff(heads, prepend=-1) != 0]
        states = states[:, np.searchsorted(known, heads >> 1)]
        known, odd = heads, heads & 1 == 1
        states[:, odd] = engine.jump(states[:, odd], engine.subsequence_log2 + bit)
    return np.ascontiguousarray(states)


def _ahead(engine: Engine, states: Words, steps: int) -> Words:
    for bit in range(steps.bit_length()):
        if steps >> bit & 1:
            states = engine.jump(states, bit)
    return states


def _walk(engine: Engine, states: Words, steps: Int64) -> Words:
    """States, each as many steps later as `steps` says, changed in place."""
    for bit in range(int(steps.max()).bit_length()):
        moved = steps >> bit & 1 == 1
        states[:, moved] = engine.jump(states[:, moved], bit)
    return states
