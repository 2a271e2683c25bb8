"""Generators with many engines on one sequence: which engine gives which vector, and jumps to that position.

With T engines and `offset` words skipped, engine e has skipped offset // T + (e < offset % T) words of its own stream.
Vector j comes from engine (offset + j) % T: its words are the next j // T * width ... of that stream. rocRAND deals
vectors to engines in this way (`library/src/rng/xorwow.hpp`, `mrg.hpp`, `lfsr113.hpp`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .arrays import Int64, Words, distinct
from .lfsr113 import Lfsr113
from .mrg import MRG31K3P, MRG32K3A
from .xorwow import Xorwow

DENSE = 8
"""Engines are stepped through all their words if these are at most so many times the requested words."""


class Engine(Protocol):
    """A generator's sequence with a linear step. n states are an array (words of a state, n), with a state a column."""

    @property
    def subsequence_log2(self) -> int:
        """log2 of the steps between neighbouring engines."""

    def seeded(self, seed: int) -> Words:
        """The state of engine 0, of shape (words of a state, 1)."""

    def matrix(self, log2: int) -> Words:
        """The matrix of 2^log2 steps; the class says in which layout."""
        ...

    def jump(self, states: Words, log2: int) -> Words:
        """New states, 2^log2 steps later."""

    def step(self, states: Words) -> Words:
        """The next word of each state, (n,); advances the states in place."""


ENGINES: dict[str, Engine] = {
    "xorwow": Xorwow(),
    "mrg32k3a": MRG32K3A,
    "mrg31k3p": MRG31K3P,
    "lfsr113": Lfsr113(),
}


def engine_words(engine: Engine, seed: int, offset: int, engines: int, vectors: Int64, width: int) -> Words:
    """The words (vectors, width) of the vectors with these numbers."""
    skipped, start = divmod(offset, engines)
    position = start + vectors
    numbers, which = distinct(position % engines)
    # The engines below `start` have skipped one word more than the others.
    depth = vectors // engines * width + (position % engines < start)
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
    """The states (engine numbers, words of a state) of the given engines before the first vector of a call."""
    skipped, start = divmod(offset, engines)
    chosen, which = distinct(numbers)
    states = orbit(engine, _ahead(engine, engine.seeded(seed), skipped), chosen)[:, which]
    return np.ascontiguousarray(_walk(engine, states, (numbers < start).astype(np.int64)).T)


def orbit(engine: Engine, origin: Words, numbers: Int64) -> Words:
    """States (words of a state, numbers) of the engines `numbers` (sorted, each once), if `origin` is engine 0's state.

    Jumps go from the highest bit of a number to its lowest. Numbers that agree in their first bits share the jumps for
    these bits, so all of T engines cost T jumps rather than T log2(T) / 2.
    """
    states, prefixes = origin, np.zeros(1, np.int64)
    for bit in reversed(range(int(numbers[-1]).bit_length())):
        heads = numbers >> bit
        heads = heads[np.diff(heads, prepend=-1) != 0]
        states = states[:, np.searchsorted(prefixes, heads >> 1)]
        prefixes, odd = heads, heads & 1 == 1
        states[:, odd] = engine.jump(states[:, odd], engine.subsequence_log2 + bit)
    return np.ascontiguousarray(states)


def _ahead(engine: Engine, states: Words, steps: int) -> Words:
    for bit in range(steps.bit_length()):
        if steps >> bit & 1:
            states = engine.jump(states, bit)
    return states


def _walk(engine: Engine, states: Words, steps: Int64) -> Words:
    """The states after `steps` steps each, changed in place."""
    for bit in range(int(steps.max()).bit_length()):
        moved = steps >> bit & 1 == 1
        states[:, moved] = engine.jump(states[:, moved], bit)
    return states
