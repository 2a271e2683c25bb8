"""`ChoiceModel`: the expected time of every solution for a product, with its doubt, and the order of solutions by both.

The expected time is the product's floor (`features`) times what an ensemble of trees says of the product with a
solution. The doubt is how far ratios of two expected times were off on families that were held out, by the distance of
a product to the nearest product of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, Problem, Solution, Target

from .columns import ParameterColumn, numbers_of
from .features import PAIR_FEATURES, PRODUCT_FEATURES, ProductNumbers, SolutionNumbers, pair_features, product_features
from .trees import TreeEnsemble

Floats = NDArray[np.float64]
REMEMBERED = 1024
"""The most products whose ranking is kept."""


@dataclass(frozen=True, slots=True)
class ChoiceOrigin:
    """What a model was fitted on: names of sources, numbers of products, times and groups; and with what, when."""

    sources: tuple[str, ...]
    products: int
    times: int
    groups: int
    tunesmith: str
    date: str


@dataclass(frozen=True, slots=True)
class DoubtCurve:
    """The standard deviation of the error of log ratios of two expected times: `spreads`, by the distance of a product
    to the nearest product of the fit. Between `distances` it is a straight line, beyond them it is constant."""

    distances: tuple[float, ...]
    spreads: tuple[float, ...]

    def at(self, distance: float) -> float:
        return float(np.interp(distance, self.distances, self.spreads))


@dataclass(frozen=True, slots=True)
class ExpectedTime:
    """The expected seconds of a solution, by its index, with the relative doubt (0.05: five percent)."""

    index: int
    seconds: float
    doubt: float


@dataclass(frozen=True)
class ChoiceModel:
    """A model for one device and data type, in any layout.

    `types` are the names of the problem types, and `solutions` the kernels with configurations, that it was fitted on;
    nothing is expected of others. `points` has the place (`place_of`) of each product of the fit.

    A solution is preferred to the vendor's library only if its gain is more than `caution` times the doubt. `scores`
    are those on families that were held out.
    """

    origin: ChoiceOrigin
    target: Target
    data_type: str
    types: tuple[str, ...]
    solutions: tuple[tuple[str, Configuration], ...]
    columns: tuple[ParameterColumn, ...]
    trees: TreeEnsemble
    points: Floats
    doubts: DoubtCurve
    caution: float
    scores: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def _known(self) -> frozenset[tuple[str, Configuration]]:
        return frozenset(self.solutions)

    def knows(self, solution: Solution) -> bool:
        return solution.type.name in self.types and (solution.kernel, solution.configuration) in self._known

    def times_of(self, solutions: Sequence[Solution]) -> ExpectedTimes:
        """What the model expects of these solutions, which are of one problem type."""
        return ExpectedTimes(self, solutions)

    def doubt(self, gemm: Gemm) -> float:
        """The doubt of ratios of two expected times at a product."""
        steps = self.points - place_of(gemm)
        return self.doubts.at(math.sqrt(np.einsum("ij,ij->i", steps, steps).min()))


class ExpectedTimes:
    """A model with the solutions of one problem type. Solutions that the model does not know are left out."""

    def __init__(self, model: ChoiceModel, solutions: Sequence[Solution]) -> None:
        self.model = model
        self._indices = [index for index, solution in enumerate(solutions) if model.knows(solution)]
        known = [solutions[index] for index in self._indices]
        self._is_vendor = np.array([solution.kernel == VENDOR for solution in known], bool)
        self._columns = numbers_of(model.columns, known)
        self._numbers: SolutionNumbers | None = None
        self._known = known
        self.ranked = lru_cache(REMEMBERED)(self._ranked)

    def _ranked(self, problem: Problem) -> tuple[ExpectedTime, ...]:
        """The solutions by expected time, the least first; all but the vendor's library with the doubt on top."""
        if not self._known or not all(problem.sizes):
            return ()
        product = ProductNumbers.of(problem, self.model.target)
        if self._numbers is None:
            self._numbers = SolutionNumbers.of(self._known, self.model.target, product.situation.element_bytes)
        logs = self.model.trees.predict(features_of(product, self._columns, self._numbers))
        doubt = self.model.doubt(product.situation.gemm)
        cautious = logs + np.where(self._is_vendor, 0.0, self.model.caution * doubt)
        seconds = product.floor * np.exp(logs)
        return tuple(
            ExpectedTime(self._indices[known], float(seconds[known]), doubt)
            for known in np.argsort(cautious, kind="stable").tolist()
        )


def features_of(product: ProductNumbers, columns: Floats, solutions: SolutionNumbers) -> Floats:
    """A row of features for each solution: of the product, of the solution, and of both (`feature_names`)."""
    first, width = len(PRODUCT_FEATURES), len(PRODUCT_FEATURES) + columns.shape[1]
    rows = np.empty((len(columns), width + len(PAIR_FEATURES)))
    rows[:, :first] = product_features(product)
    rows[:, first:width] = columns
    rows[:, width:] = pair_features(product, solutions)
    return rows


def feature_names(columns: Sequence[ParameterColumn]) -> tuple[str, ...]:
    """The names of the features, in the order of `features_of`."""
    names = (f"{column.name} {column.position}" for column in columns)
    return (*PRODUCT_FEATURES, *names, *PAIR_FEATURES)


def place_of(gemm: Gemm) -> list[float]:
    """Where a product lies among others: the binary logarithms of its sizes and of their alignment, and its layout."""
    alignments = (0.5 * math.log2(math.gcd(size, 64)) for size in (gemm.m, gemm.n, gemm.k))
    sizes = (math.log2(size) for size in (gemm.m, gemm.n, gemm.k, gemm.batch))
    return [*sizes, *alignments, float(gemm.transpose_a), float(gemm.transpose_b)]
