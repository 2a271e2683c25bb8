"""Scores launch shapes over all cases, and tells which scores differ beyond noise. Scores are sums of logarithms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.records import LaunchShape

from .decision import RandomObjective, Scored, Weights
from .matrix import STATED, RandomCase, SpeedMatrix

ROUNDING = 1e-12
"""Scores that differ by less are taken as equal."""


@dataclass(frozen=True)
class ScoreScale:
    """An objective over the cases of `weights`, which add up to one. Scores are logarithms of ratios to the default;
    with `worst`, the score is the smallest of them instead of their weighted sum."""

    matrix: SpeedMatrix
    weights: Mapping[RandomCase, float]
    worst: bool = False

    def score(self, shape: LaunchShape) -> float:
        """The shape's score; KeyError for a shape that was not measured in every case."""
        logs = {case: self._log(case, shape) for case in self.weights}
        return min(logs.values()) if self.worst else math.fsum(self.weights[case] * logs[case] for case in logs)

    def doubt(self, shape: LaunchShape, other: LaunchShape) -> float:
        """Half the 95 % interval of the difference of two scores.

        Known uncertainties add up as independent ones. For an unknown uncertainty the stated noise applies to the whole
        score, however many cases there are: what disturbs one run of a shape may disturb all its runs.
        """
        if self.worst:
            pair = (shape, other)
            halves = [self.matrix.speeds[self._slowest(compared)][compared].half_width for compared in pair]
            return STATED if None in halves else math.hypot(*(half for half in halves if half is not None))
        doubts = [(weight, self.matrix.doubt(case, shape, other)) for case, weight in self.weights.items()]
        from_known = math.hypot(*(weight * doubt for weight, doubt in doubts if doubt is not None))
        return from_known + STATED * math.fsum(weight for weight, doubt in doubts if doubt is None)

    def missing(self, shape: LaunchShape) -> tuple[RandomCase, ...]:
        return tuple(case for case in self.weights if shape not in self.matrix.speeds[case])

    def rank(self, shapes: Collection[LaunchShape]) -> tuple[Scored, ...]:
        """The shapes with their scores as ratios, best first; equal shapes by fewer threads, then smaller blocks."""
        ranked = sorted((-self.score(shape), shape.threads, shape) for shape in shapes)
        return tuple(Scored(shape, math.exp(-badness)) for badness, _, shape in ranked)

    def equals(self, ranking: Sequence[Scored]) -> tuple[LaunchShape, ...]:
        """The first shape of the ranking, and the shapes that cannot be told from it."""
        first, best = ranking[0].shape, self.score(ranking[0].shape)
        return tuple(
            scored.shape
            for scored in ranking
            if best - self.score(scored.shape) <= self.doubt(first, scored.shape) + ROUNDING
        )

    def settle(self, shapes: Collection[LaunchShape], incumbents: Sequence[LaunchShape]) -> LaunchShape:
        """The best shape, or the first of the incumbents that it cannot be told from."""
        equals = self.equals(self.rank(shapes))
        return next((incumbent for incumbent in incumbents if incumbent in equals), equals[0])

    def _log(self, case: RandomCase, shape: LaunchShape) -> float:
        row = self.matrix.speeds[case]
        return row[shape].log - row[self.matrix.default].log

    def _slowest(self, shape: LaunchShape) -> RandomCase:
        return min(self.weights, key=lambda case: self._log(case, shape))


def scale(objective: RandomObjective, matrix: SpeedMatrix, weights: Weights) -> ScoreScale | None:
    """The objective's scale over all cases; None if no case has a weight.

    A distribution and type that was measured with several buffer sizes counts once: its sizes share its weight.
    """

    def weight(pair: tuple[str, str]) -> float:
        if objective is not RandomObjective.WEIGHTED:
            return 1.0
        return weights.get((matrix.generator, *pair), weights.get(("", *pair), 0.0))

    sizes = Counter(case.pair for case in matrix.cases)
    shares = {case: weight(case.pair) / sizes[case.pair] for case in matrix.cases}
    total = math.fsum(shares.values())
    if not total:
        return None
    return ScoreScale(
        matrix, {case: share / total for case, share in shares.items()}, objective is RandomObjective.WORST
    )
