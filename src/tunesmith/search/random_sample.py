"""Legal candidates in random order: what any cleverer strategy must beat at the same cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._base import Candidates, Search, Strategy, Walk


class RandomSample(Strategy):
    """Uniformly random legal candidates without repetition; in the end, every one of them."""

    name = "random"

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return Walk(candidates.among(shuffled(candidates.combinations, random)))


def shuffled(count: int, random: np.random.Generator) -> Iterator[int]:
    """The numbers below `count`, each once, every order being equally likely.

    Fisher and Yates' shuffle, one swap for each number asked for, remembering only what was moved: a space far too
    large to list can be sampled.
    """
    moved: dict[int, int] = {}
    for place in range(count):
        drawn = int(random.integers(place, count))
        yield moved.get(drawn, drawn)
        moved[drawn] = moved.pop(place, place)
