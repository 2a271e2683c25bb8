"""Searches that learn nothing: every legal candidate, in order or at random."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

from tunesmith.records import Configuration
from tunesmith.spaces import Combinations

from .base import LOOKS, MOST_WHOLE, CandidateBatch, Candidates, Search, Strategy

SAMPLE = 1000
"""Combinations that stand for more than can be looked at."""

LARGEST = 2**63 - 1
"""What a generator can draw integers below."""


class Exhaustive(Strategy):
    """Every legal candidate: in one batch and in order; of more than `MOST_WHOLE` combinations, as a random sample."""

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        if candidates.choices.count > MOST_WHOLE:
            return RandomSample().start(candidates, random)
        return _SampledSearch(candidates, iter(candidates))


class RandomSample(Strategy):
    """Uniformly random legal candidates without repetition: what any cleverer strategy must beat at the same cost."""

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return _SampledSearch(candidates, sample(candidates, random))


class _SampledSearch(Search):
    """Hands out the legal ones of an order, looking at so many of its combinations for a batch."""

    def __init__(self, candidates: Candidates, order: Iterator[Configuration]) -> None:
        super().__init__()
        self._candidates, self._order = candidates, order
        self._looks = MOST_WHOLE if candidates.choices.count <= MOST_WHOLE else LOOKS
        self._left = math.inf if candidates.trials is None else candidates.trials

    def ask(self) -> CandidateBatch | None:
        fresh: dict[Configuration, None] = {}
        looked = 0
        while len(fresh) < self._left and not (fresh and looked >= self._looks):
            if (config := next(self._order, None)) is None:
                break
            looked += 1
            if config not in self.told and self._candidates.legal(config):
                fresh[config] = None
        self._left -= len(fresh)
        return CandidateBatch(tuple(fresh), self._candidates.mode) if fresh else None


def sample(candidates: Candidates, random: np.random.Generator) -> Iterator[Configuration]:
    """The combinations, legal or not: those of `first`, then all of them in an order of equal chances."""
    choices = candidates.choices
    return chain(candidates.first, (candidates.base | choices[number] for number in shuffled(choices.count, random)))


def some(choices: Combinations) -> Iterator[Configuration]:
    """All of them in their order; of more than `MOST_WHOLE` a sample of `SAMPLE`, always the same."""
    if choices.count <= MOST_WHOLE:
        return iter(choices)
    return map(choices.__getitem__, islice(shuffled(choices.count, np.random.default_rng(0)), SAMPLE))


def shuffled(count: int, random: np.random.Generator) -> Iterator[int]:
    """The numbers below `count`, each once, every order being equally likely.

    Fisher and Yates' shuffle, one swap for each number asked for, remembering only what was moved: a space far too
    large to list can be sampled.
    """
    moved: dict[int, int] = {}
    for index in range(count):
        drawn = index + _below(count - index, random) if count > LARGEST else int(random.integers(index, count))
        yield moved.get(drawn, drawn)
        moved[drawn] = moved.pop(index, index)


def _below(count: int, random: np.random.Generator) -> int:
    """A number below one that a generator's own integers do not reach; its bias is below 2**-64."""
    return int.from_bytes(random.bytes(count.bit_length() // 8 + 9), "big") % count
