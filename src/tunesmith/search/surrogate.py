"""A model of times, learnt from what was measured, says what to measure next: extremely randomised trees.

Each tree of the forest is one opinion on how fast every candidate is. The next candidates are those that single trees,
drawn at random, hold for the fastest (Thompson sampling): where the trees agree the best is refined, where they differ
something new is tried, and a batch holds several opinions. Against lower confidence bounds, expected improvement and a
Gaussian process it came nearest to the best on eight parts of a recorded sweep (benchmarks/recorded).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from tunesmith.records import Configuration, UserError

from .base import MOST_WHOLE, CandidateBatch, Candidates, Search, Strategy
from .features import Features, features
from .sampling import sample

TREES = 200

FEWEST_FIRST, MOST_FIRST, FIRST_SHARE = 12, 32, 0.025
"""Candidates that are measured before the model has a say: so large a share of all, within these bounds."""

MOST_CANDIDATES = 20_000
"""Of a larger space the model knows so many, drawn at random: it looks at each of them before every batch."""


SHARE, FEWEST = 0.1, 24
"""Of the candidates that are measured where nobody says how many: so large a share of all, and so many at least."""

BATCH = 4
"""Candidates between two looks of the model: more would be chosen on less knowledge."""


class Surrogate(Strategy):
    """First candidates that lie far apart, then those that the model holds for fast.

    Raises UserError where scikit-learn is not installed.
    """

    def count(self, candidates: int, trials: int | None) -> int:
        wanted = max(FEWEST, math.ceil(SHARE * candidates)) if trials is None else trials
        return min(candidates, wanted, MOST_CANDIDATES)

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        _forest()
        looked = iter(candidates)
        if candidates.choices.count > MOST_CANDIDATES:
            looked = islice(sample(candidates, random), MOST_WHOLE)
        known = tuple(dict.fromkeys(islice(filter(candidates.legal, looked), MOST_CANDIDATES)))
        return _Guided(candidates, known, random, self.count(len(known), candidates.trials))


class _Guided(Search):
    def __init__(
        self, candidates: Candidates, known: Sequence[Configuration], random: np.random.Generator, trials: int
    ) -> None:
        super().__init__()
        self._candidates, self._known, self._random, self._left = candidates, known, random, trials
        self._index = {config: index for index, config in enumerate(known)}
        self._features = features(known, candidates.describe)
        share = math.ceil(FIRST_SHARE * len(known))
        self._first = min(MOST_FIRST, max(FEWEST_FIRST, share))
        held = [self._index[config] for config in candidates.first if config in self._index]
        self._spread = chain(held, _far_apart(self._features, random))
        self._open = dict.fromkeys(range(len(known)))

    def ask(self) -> CandidateBatch | None:
        costs, count = self._candidates.costs(self.told), min(BATCH, self._left, len(self._open))
        chosen: list[int] = []
        while len(chosen) < count:
            more = self._opinions(costs, count - len(chosen)) if len(costs) >= self._first else [self._next_apart()]
            for index in more:
                del self._open[index]
            chosen += more
        self._left -= count
        return CandidateBatch(tuple(self._known[index] for index in chosen), self._candidates.mode) if chosen else None

    def _next_apart(self) -> int:
        return next(location for location in self._spread if location in self._open)

    def _opinions(self, costs: Mapping[Configuration, float], count: int) -> list[int]:
        """The open candidates that trees, one after the other, hold for the fastest, each once."""
        slowest = max(costs.values())
        # What did not run teaches to stay away, but not how far.
        times = np.log([costs.get(config, slowest) for config in self.told])
        learnt = self._features[[self._index[config] for config in self.told]]
        seed = int(self._random.integers(1 << 31))
        forest = _forest()(n_estimators=TREES, random_state=seed).fit(learnt, times)
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
    index = int(random.integers(len(known)))
    while True:
        yield index
        left[index] = False
        if not left.any():
            return
        distances = np.minimum(distances, ((scaled - scaled[index]) ** 2).sum(axis=1))
        weights = np.where(left, distances, 0.0)
        weights = weights if weights.sum() else left.astype(float)
        index = int(random.choice(len(known), p=weights / weights.sum()))


def _forest() -> Any:
    try:
        # Imported here since it is an extra, and takes a second.
        from sklearn.ensemble import ExtraTreesRegressor
    except ImportError as error:
        raise UserError("guided search", "scikit-learn is not installed", "pip install 'tunesmith[search]'") from error
    return ExtraTreesRegressor
