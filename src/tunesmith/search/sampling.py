"""Searches that do not learn from times: all legal candidates in order, or in random order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

from tunesmith.records import Configuration
from tunesmith.spaces import Combinations

from .base import LARGEST_LISTED, MOST_EXAMINED, CandidateBatch, Candidates, Search, Strategy

SAMPLE = 1000
"""How many combinations are sampled from a space that is too large to examine."""

LARGEST = 2**63 - 1
"""The largest bound for integers that a generator can draw."""


class Exhaustive(Strategy):
    """All legal candidates, in one batch and in order; in random order if there are more than `LARGEST_LISTED`
    combinations."""

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        if candidates.choices.count > LARGEST_LISTED:
            return RandomSample().start(candidates, random)
        return _SampledSearch(candidates, iter(candidates))


class RandomSample(Strategy):
    """Uniformly random legal candidates without repetition. A cleverer strategy must beat this one at the same cost."""

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return _SampledSearch(candidates, sample(candidates, random))


class _SampledSearch(Search):
    """Asks for the legal configurations of `order`. A batch examines a limited number of combinations, but goes on
    until it has a legal one."""

    def __init__(self, candidates: Candidates, order: Iterator[Configuration]) -> None:
        super().__init__()
        self._candidates, self._order = candidates, order
        self._most_examined = LARGEST_LISTED if candidates.choices.count <= LARGEST_LISTED else MOST_EXAMINED
        self._trials_left = math.inf if candidates.trials is None else candidates.trials

    def ask(self) -> CandidateBatch | None:
        batch: dict[Configuration, None] = {}
        examined = 0
        while len(batch) < self._trials_left and not (batch and examined >= self._most_examined):
            if (config := next(self._order, None)) is None:
                break
            examined += 1
            if config not in self.told and self._candidates.legal(config):
                batch[config] = None
        self._trials_left -= len(batch)
        return CandidateBatch(tuple(batch), self._candidates.mode) if batch else None


def sample(candidates: Candidates, random: np.random.Generator) -> Iterator[Configuration]:
    """The configurations in `first`, then all combinations in random order; illegal ones are included."""
    choices = candidates.choices
    return chain(candidates.first, (candidates.base | choices[number] for number in shuffled(choices.count, random)))


def all_or_sample(choices: Combinations) -> Iterator[Configuration]:
    """All combinations in their order; if there are more than `LARGEST_LISTED`, a fixed random sample of `SAMPLE`."""
    if choices.count <= LARGEST_LISTED:
        return iter(choices)
    return map(choices.__getitem__, islice(shuffled(choices.count, np.random.default_rng(0)), SAMPLE))


def shuffled(count: int, random: np.random.Generator) -> Iterator[int]:
    """The numbers below `count` in random order, each once; every order is equally likely.

    This is Fisher and Yates' shuffle with one swap for each number. It stores only the swapped numbers, so that a space
    that is far too large to list can be sampled.
    """
    moved: dict[int, int] = {}
    for index in range(count):
        drawn = index + _below(count - index, random) if count > LARGEST else int(random.integers(index, count))
        yield moved.get(drawn, drawn)
        moved[drawn] = moved.pop(index, index)


def _below(count: int, random: np.random.Generator) -> int:
    """A random number below `count`, which is beyond the generator's own integers. Its bias is below 2**-64."""
    return int.from_bytes(random.bytes(count.bit_length() // 8 + 9), "big") % count
