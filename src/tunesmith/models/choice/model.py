"""`ChoiceModel`: the expected time of every solution for a product, with its doubt, and the order of solutions by both.

The expected time is the product's floor (`features`) times what an ensemble of trees says of the product with a
solution. A second ensemble says how far the ratio of that time to the vendor's can be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.records import Configuration, LibraryPlan, Problem, ProblemType, Solution, Target

from .columns import ParameterColumn, numbers_of
from .features import PAIR_FEATURES, PRODUCT_FEATURES, ProductNumbers, SolutionNumbers, pair_features, product_features
from .plans import plan_features, with_plans
from .trees import TreeEnsemble

Floats = NDArray[np.float64]
REMEMBERED = 1024
"""The most products whose ranking is kept."""
EARLY_TREES, BEHIND, FIRST = 60, 0.2, 8
"""So many trees are asked about all solutions. One that they expect to take longer than the vendor's library, by more
than BEHIND in logarithms, would not be preferred to it, since each later tree corrects less. So the later trees are
not asked about it, unless it is one of the FIRST. At 333 products of an H200 that were not fitted on, the choices
were as good as those of all 400 trees, and the later ones were asked about a third of 88 solutions."""


@dataclass(frozen=True, slots=True)
class ChoiceOrigin:
    """What a model was fitted on: names of sources, numbers of products, times and families; and with what, when.
    `siblings` names other devices, or types with a device, and `translated` is the number of their products whose times
    were translated to those of this device and type, or taken as they are. `library_alone` is the number of products at
    which the vendor's library alone was timed."""

    sources: tuple[str, ...]
    products: int
    times: int
    families: int
    tunesmith: str
    date: str
    siblings: tuple[str, ...] = ()
    translated: int = 0
    library_alone: int = 0


class ExpectedTime(NamedTuple):
    """The expected seconds of a `solution`, by its index. `doubt` is the standard deviation of the logarithm of its
    ratio to the vendor's expected time (0.05: five percent); for the vendor, of its ratio to the fastest other
    solution. Of a solution far behind the vendor, the seconds are rough. A first choice makes a hundred of these, so it
    is a tuple."""

    solution: int
    seconds: float
    doubt: float


@dataclass(frozen=True)
class ChoiceModel:
    """A model for one device and data type.

    `solutions` are the kernels with configurations that it was fitted on, and `types` has for the name of each problem
    type the indices of those that compute it; nothing is expected of others. `times` predicts the logarithm of a time
    over the product's floor, `doubts` that of the doubt. A solution is preferred to the vendor's library only if its
    gain is more than `caution` times the doubt. `scores` are those on families that were held out.

    `library` predicts what `times` does, of the vendor's library alone, at products of which the library has told its
    plan (`plans`); None if no plans were known.
    """

    origin: ChoiceOrigin
    target: Target
    data_type: str
    types: Mapping[str, tuple[int, ...]]
    solutions: tuple[tuple[str, Configuration], ...]
    columns: tuple[ParameterColumn, ...]
    times: TreeEnsemble
    doubts: TreeEnsemble
    caution: float
    scores: Mapping[str, float] = field(default_factory=dict)
    library: TreeEnsemble | None = None

    @cached_property
    def early_and_late(self) -> tuple[TreeEnsemble, TreeEnsemble]:
        """The trees of `times`: those that are asked about all solutions, and the others."""
        return self.times.split(EARLY_TREES)

    def solutions_of(self, kind: ProblemType) -> tuple[Solution, ...]:
        """The solutions of a problem type, in the order of the type's indices."""
        return tuple(Solution(kind, *self.solutions[index]) for index in self.types.get(kind.name, ()))

    def only(self, names: Collection[str]) -> ChoiceModel:
        """The model of these problem types alone, with their solutions."""
        types = {name: indices for name, indices in self.types.items() if name in names}
        kept = sorted({index for indices in types.values() for index in indices})
        numbers = {index: number for number, index in enumerate(kept)}
        return replace(
            self,
            types={name: tuple(numbers[index] for index in indices) for name, indices in types.items()},
            solutions=tuple(self.solutions[index] for index in kept),
        )

    def times_of(self, kind: ProblemType, solutions: Sequence[Solution]) -> ExpectedTimes:
        """What the model expects of these solutions of one problem type."""
        return ExpectedTimes(self, kind, solutions)


class ExpectedTimes:
    """A model with the solutions of one problem type. Solutions that the model does not know are left out."""

    def __init__(self, model: ChoiceModel, kind: ProblemType, solutions: Sequence[Solution]) -> None:
        self._model = model
        of_type = model.solutions_of(kind)
        positions = {solution: position for position, solution in enumerate(of_type)}
        self._indices = [index for index, solution in enumerate(solutions) if solution in positions]
        self._positions = [positions[solutions[index]] for index in self._indices]
        self._is_own = np.array([solutions[index].kernel != VENDOR for index in self._indices], bool)
        self._of_type = of_type
        self.ranked = lru_cache(REMEMBERED)(self._ranked)

    @property
    def uses_plans(self) -> bool:
        """Whether the library's plan changes what is expected."""
        return self._model.library is not None

    def _ranked(self, problem: Problem, plan: LibraryPlan | None = None) -> tuple[ExpectedTime, ...]:
        """The solutions by expected time, the least first; all but the vendor's library with the doubt on top. The
        solutions that do not compete come last. `plan` is what the library says of the problem, if it is known."""
        if not self._indices or not all(problem.sizes):
            return ()
        product = ProductNumbers.of(problem, self._model.target)
        rows = features_of(product, *self._numbers)[self._positions]
        logs, competes = self._expected(rows, plan)
        doubts = np.exp(self._model.doubts.predict(rows))
        order = np.lexsort((logs + self._model.caution * doubts * self._is_own, ~competes))
        indices, seconds = np.array(self._indices)[order], product.floor * np.exp(logs[order])
        return tuple(map(ExpectedTime, indices.tolist(), seconds.tolist(), doubts[order].tolist()))

    def _expected(self, rows: Floats, plan: LibraryPlan | None) -> tuple[Floats, NDArray[np.bool_]]:
        """The expected logarithms of all solutions, and which of them compete: those about which all trees are
        asked. With a plan, the library's own trees expect its time, and the early trees' times are compared with
        that."""
        early, late = self._model.early_and_late
        logs, is_asked = early.predict(rows), np.ones(len(rows), bool)
        if self._model.library and plan:
            is_asked = self._is_own
            logs[~is_asked] = self._model.library.predict(with_plans(rows[~is_asked], plan_features(plan)))
        vendors = logs[~self._is_own]
        competes = logs <= (vendors.min() + BEHIND if len(vendors) else math.inf)
        competes[np.argsort(logs, kind="stable")[:FIRST]] = True
        logs[competes & is_asked] += late.predict(rows[competes & is_asked])
        return logs, competes

    @cached_property
    def _numbers(self) -> tuple[Floats, SolutionNumbers]:
        """The numbers of all solutions of the type: what is possible at a product is one of its features."""
        return numbers_of(self._model.columns, self._of_type), SolutionNumbers.of(self._of_type, self._model.target)


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
