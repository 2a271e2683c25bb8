"""A search guided by a surrogate model of times (extremely randomised trees), which learns from the measured times.

Each tree of the forest predicts the time of every candidate. A batch takes the candidates that single trees, drawn at
random, predict to be the fastest (Thompson sampling). Where the trees agree, the search refines the best; where they
differ, it explores. Compared with lower confidence bounds, expected improvement and a Gaussian process, this search
came nearest to the best on eight parts of a recorded sweep (benchmarks/recorded).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from tunesmith.records import Configuration, UserError

from .base import LARGEST_LISTED, CandidateBatch, Candidates, Search, Strategy
from .features import Features, features
from .sampling import sample

TREES = 200

FEWEST_FIRST, MOST_FIRST, FIRST_SHARE = 12, 32, 0.025
"""The number of candidates that are measured before the model is used: this share of all, within the two bounds."""

MOST_CANDIDATES = 20_000
"""How many candidates of a larger space the model considers, drawn at random: it predicts each of them for every
batch."""

SHARE, FEWEST = 0.1, 24
"""The default number of trials: this share of all candidates, and at least FEWEST."""

BATCH = 4
"""Candidates in a batch. A larger batch would be chosen with less knowledge."""


class Surrogate(Strategy):
    """First candidates that lie far apart, then candidates that the model predicts to be fast.

    Raises UserError if scikit-learn is not installed.
    """

    def count(self, candidates: int, trials: int | None) -> int:
        requested = max(FEWEST, math.ceil(SHARE * candidates)) if trials is None else trials
        return min(candidates, requested, MOST_CANDIDATES)

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        _tree_class()
        examined = iter(candidates)
        if candidates.choices.count > MOST_CANDIDATES:
            examined = islice(sample(candidates, random), LARGEST_LISTED)
        legal = tuple(dict.fromkeys(islice(filter(candidates.legal, examined), MOST_CANDIDATES)))
        return _Guided(candidates, legal, random, self.count(len(legal), candidates.trials))


class _Guided(Search):
    """Searches among the configurations in `legal`. Candidates are handled by their index there."""

    def __init__(
        self, candidates: Candidates, legal: Sequence[Configuration], random: np.random.Generator, trials: int
    ) -> None:
        super().__init__()
        self._candidates, self._legal, self._random, self._trials_left = candidates, legal, random, trials
        self._index = {config: index for index, config in enumerate(legal)}
        self._features = features(legal, candidates.describe)
        share = math.ceil(FIRST_SHARE * len(legal))
        self._fewest_costs = min(MOST_FIRST, max(FEWEST_FIRST, share))
        first = [self._index[config] for config in candidates.first if config in self._index]
        self._spread = chain(first, _far_apart(self._features, random))
        self._open = dict.fromkeys(range(len(legal)))

    def ask(self) -> CandidateBatch | None:
        costs, count = self._candidates.costs(self.told), min(BATCH, self._trials_left, len(self._open))
        use_model = len(costs) >= self._fewest_costs
        chosen: list[int] = []
        while len(chosen) < count:
            more = self._predicted_fastest(costs, count - len(chosen)) if use_model else [self._next_apart()]
            for index in more:
                del self._open[index]
            chosen += more
        self._trials_left -= count
        return CandidateBatch(tuple(self._legal[index] for index in chosen), self._candidates.mode) if chosen else None

    def _next_apart(self) -> int:
        return next(index for index in self._spread if index in self._open)

    def _predicted_fastest(self, costs: Mapping[Configuration, float], count: int) -> list[int]:
        """The open candidates that trees in random order predict to be the fastest, each candidate once."""
        slowest = max(costs.values())
        # A configuration that did not run counts as the slowest: the model learns to avoid it.
        log_costs = np.log([costs.get(config, slowest) for config in self.told])
        measured = self._features[[self._index[config] for config in self.told]]
        seed = int(self._random.integers(1 << 31))
        indices = np.fromiter(self._open, dtype=int)
        predictions = _predictions(measured, log_costs, self._features[indices], seed)
        # Many candidates share a leaf. Among those that a tree predicts to be equal, the mean of all trees decides.
        predictions += 1e-6 * predictions.mean(axis=0)
        chosen: dict[int, None] = {}
        for tree in self._random.permutation(TREES):
            chosen.setdefault(int(indices[predictions[tree].argmin()]))
            if len(chosen) == count:
                break
        return list(chosen)


def _far_apart(points: Features, random: np.random.Generator) -> Iterator[int]:
    """The index of every row, once. The first row is drawn at random. Each next row is drawn with a probability that
    grows with the square of its distance to the nearest earlier row, so that no corner is left out (the seeding of
    k-means++)."""
    if not len(points):
        return
    scaled = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-12)
    distances = np.full(len(points), math.inf)
    remaining = np.ones(len(points), bool)
    index = int(random.integers(len(points)))
    while True:
        yield index
        remaining[index] = False
        if not remaining.any():
            return
        distances = np.minimum(distances, ((scaled - scaled[index]) ** 2).sum(axis=1))
        weights = np.where(remaining, distances, 0.0)
        weights = weights if weights.sum() else remaining.astype(float)
        index = int(random.choice(len(points), p=weights / weights.sum()))


def _predictions(measured: Features, log_costs: Features, asked: Features, seed: int) -> Features:
    """What each tree of a forest predicts for each row of `asked`.

    scikit-learn's ExtraTreesRegressor with this seed has the same trees, but takes three times as long: it clones its
    tree and checks the same arrays for each of them.
    """
    from sklearn import config_context

    tree_class, random = _tree_class(), np.random.RandomState(seed)
    seeds = [random.randint(np.iinfo(np.int32).max) for _ in range(TREES)]
    known, unknown = measured.astype(np.float32), asked.astype(np.float32)
    with config_context(skip_parameter_validation=True):
        trees = [tree_class(random_state=each).fit(known, log_costs, check_input=False) for each in seeds]
    return np.stack([tree.predict(unknown, check_input=False) for tree in trees])


def _tree_class() -> Any:
    try:
        # Imported here because scikit-learn is an extra, and its import takes a second.
        from sklearn.tree import ExtraTreeRegressor
    except ImportError as error:
        raise UserError("guided search", "scikit-learn is not installed", "pip install 'tunesmith[search]'") from error
    return ExtraTreeRegressor
