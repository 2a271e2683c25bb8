"""A model of times, learnt from what was measured, says what to measure next: extremely randomised trees.

Each tree of the forest is one opinion on how fast every candidate is. The next candidates are those that single trees,
drawn at random, hold for the fastest (Thompson sampling): where the trees agree the best is refined, where they differ
something new is tried, and a batch holds several opinions. Against lower confidence bounds, expected improvement and a
Gaussian process it came nearest to the best on eight parts of a recorded sweep (benchmarks/recorded).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from tunesmith.records import Configuration, UserError

from ._base import Candidates, Search, Strategy
from ._features import Describe, Features, features
from .random_sample import shuffled

TREES = 200

FEWEST_FIRST, MOST_FIRST, FIRST_SHARE = 12, 32, 0.025
"""Candidates that are measured before the model has a say: so large a share of all, within these bounds."""

MOST_CANDIDATES = 20_000
"""Of a larger space the model knows so many, drawn at random: it looks at each of them before every batch."""


class Surrogate(Strategy):
    """`describe` adds to a configuration what follows from it; without it the parameters alone must do.

    Raises UserError where scikit-learn is not installed.
    """

    name = "surrogate"

    def __init__(self, describe: Describe = lambda config: {}) -> None:
        self._describe = describe

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        _forest()
        return _Guided(candidates, random, self._describe)


class _Guided(Search):
    """First candidates that lie far apart, then those that the model holds for fast; in the end, every one of them."""

    def __init__(self, candidates: Candidates, random: np.random.Generator, describe: Describe) -> None:
        super().__init__()
        self._random = random
        if candidates.combinations <= MOST_CANDIDATES:
            known = candidates.among(iter(range(candidates.combinations)))
        else:
            known = islice(candidates.among(shuffled(candidates.combinations, random)), MOST_CANDIDATES)
        self._known = tuple(dict.fromkeys(known))
        self._place = {config: place for place, config in enumerate(self._known)}
        self._features = features(self._known, describe)
        share = math.ceil(FIRST_SHARE * len(self._known))
        self._first = min(MOST_FIRST, max(FEWEST_FIRST, share))
        self._spread = _far_apart(self._features, random)
        self._open = dict.fromkeys(range(len(self._known)))

    def ask(self, count: int = 1) -> tuple[Configuration, ...]:
        chosen: list[int] = []
        while len(chosen) < count and self._open:
            ready = sum(seconds is not None for seconds in self.told.values()) >= self._first
            more = self._opinions(count - len(chosen)) if ready else [self._next_apart()]
            for place in more:
                del self._open[place]
            chosen += more
        return tuple(self._known[place] for place in chosen)

    def tell(self, config: Configuration, seconds: float | None) -> None:
        super().tell(config, seconds)
        if (place := self._place.get(config)) is not None:
            self._open.pop(place, None)

    def _next_apart(self) -> int:
        return next(place for place in self._spread if place in self._open)

    def _opinions(self, count: int) -> list[int]:
        """The open candidates that trees, one after the other, hold for the fastest, each once."""
        learnt = [(self._place[config], seconds) for config, seconds in self.told.items() if config in self._place]
        slowest = max(seconds for _, seconds in learnt if seconds is not None)
        # What did not run teaches to stay away, but not how far.
        times = np.log([slowest if seconds is None else seconds for _, seconds in learnt])
        seed = int(self._random.integers(1 << 31))
        forest = _forest()(n_estimators=TREES, random_state=seed).fit(self._features[[p for p, _ in learnt]], times)
        places = np.fromiter(self._open, dtype=int)
        said = np.stack([tree.predict(self._features[places]) for tree in forest.estimators_])
        # Many candidates share a leaf: among those that a tree holds for equal, all trees together decide.
        said += 1e-6 * said.mean(axis=0)
        chosen: dict[int, None] = {}
        for tree in self._random.permutation(TREES):
            chosen.setdefault(int(places[said[tree].argmin()]))
            if len(chosen) == count:
                break
        return list(chosen)


def _far_apart(known: Features, random: np.random.Generator) -> Iterator[int]:
    """Every row once: the first at random, each next one with a probability that grows with the square of its distance
    to the nearest before it, so that no corner is left out (the seeding of k-means++)."""
    if not len(known):
        return
    scaled = (known - known.mean(axis=0)) / np.maximum(known.std(axis=0), 1e-12)
    distances = np.full(len(known), math.inf)
    left = np.ones(len(known), bool)
    place = int(random.integers(len(known)))
    while True:
        yield place
        left[place] = False
        if not left.any():
            return
        distances = np.minimum(distances, ((scaled - scaled[place]) ** 2).sum(axis=1))
        weights = np.where(left, distances, 0.0)
        weights = weights if weights.sum() else left.astype(float)
        place = int(random.choice(len(known), p=weights / weights.sum()))


def _forest() -> Any:
    try:
        # Imported here since it is an extra, and takes a second.
        from sklearn.ensemble import ExtraTreesRegressor
    except ImportError as error:
        raise UserError("guided search", "scikit-learn is not installed", "pip install 'tunesmith[search]'") from error
    return ExtraTreesRegressor
