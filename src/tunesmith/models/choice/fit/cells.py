"""Products with solutions as rows of features, one for each time of a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.models.choice.columns import ParameterColumn, columns_of, numbers_of
from tunesmith.models.choice.features import ProductNumbers, SolutionNumbers
from tunesmith.models.choice.model import features_of
from tunesmith.models.choice.plans import plan_features, with_plans
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.records import Problem, ProblemType, Solution, Target

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class ChoiceFeatures:
    """Features of products with all solutions of their types, which are columns of a matrix."""

    def __init__(self, solutions: Sequence[Solution], target: Target) -> None:
        self.columns = columns_of(solutions)
        self.by_type: dict[ProblemType, list[int]] = {}
        for index, solution in enumerate(solutions):
            self.by_type.setdefault(solution.type, []).append(index)
        self._target = target
        self._numbers = dict(self._numbers_of(solutions))

    def rows(self, problem: Problem) -> Floats:
        """A row for each solution in `by_type[problem.type]`."""
        return features_of(ProductNumbers.of(problem, self._target), *self._numbers[problem.type])

    def _numbers_of(
        self, solutions: Sequence[Solution]
    ) -> Iterator[tuple[ProblemType, tuple[Floats, SolutionNumbers]]]:
        for kind, indices in self.by_type.items():
            of_type = [solutions[index] for index in indices]
            yield kind, (numbers_of(self.columns, of_type), SolutionNumbers.of(of_type, self._target))


@dataclass(frozen=True)
class PairRows:
    """Products with solutions, an entry for each pair: its `features`, and its row and column in a matrix of `shape`.
    `vendors` marks the columns of the vendor's library."""

    features: Floats
    row: Indices
    column: Indices
    shape: tuple[int, int]
    vendors: NDArray[np.bool_]

    def table(self, values: Floats) -> Floats:
        """The values of the pairs as a matrix, NaN where there is no pair."""
        table = np.full(self.shape, np.nan)
        table[self.row, self.column] = values
        return table

    def only(self, kept: NDArray[np.bool_]) -> PairRows:
        return PairRows(self.features[kept], self.row[kept], self.column[kept], self.shape, self.vendors)


def _pair_rows(features: ChoiceFeatures, problems: Sequence[Problem], solutions: Sequence[Solution]) -> PairRows:
    """Every problem with every solution of its type."""
    found = [features.rows(problem) for problem in problems]
    columns = [features.by_type[problem.type] for problem in problems]
    return PairRows(
        np.concatenate(found),
        np.repeat(np.arange(len(problems)), [len(rows) for rows in found]),
        np.concatenate([np.array(indices) for indices in columns]),
        (len(problems), len(solutions)),
        np.array([solution.kernel == VENDOR for solution in solutions]),
    )


@dataclass(frozen=True)
class TimeCells:
    """The times of a matrix: the pairs that have one, and the logarithm of each time over its product's floor.
    `columns` and `types` are as in `ChoiceModel`. `plans` has the features of the library's plan for each row of the
    matrix, NaN where it is not known."""

    columns: tuple[ParameterColumn, ...]
    types: Mapping[str, tuple[int, ...]]
    pairs: PairRows
    logs: Floats
    plans: Floats

    @property
    def times(self) -> Floats:
        """The logarithms as a matrix."""
        return self.pairs.table(self.logs)

    @property
    def without_plans(self) -> TimeCells:
        return replace(self, plans=np.full_like(self.plans, np.nan))

    def only(self, kept: NDArray[np.bool_]) -> TimeCells:
        return replace(self, pairs=self.pairs.only(kept), logs=self.logs[kept])

    @cached_property
    def planned(self) -> NDArray[np.bool_]:
        """The pairs of the vendor's library whose plan is known."""
        known: NDArray[np.bool_] = np.isfinite(self.plans[:, 0])
        return known[self.pairs.row] & self.pairs.vendors[self.pairs.column]

    @property
    def planned_features(self) -> Floats:
        """The features of these pairs, with those of their plans behind."""
        return with_plans(self.pairs.features[self.planned], self.plans[self.pairs.row[self.planned]])


def joined(parts: Sequence[TimeCells]) -> TimeCells:
    """The cells of all parts, which have the same solutions; the rows of each part are behind those of the others."""
    first, *_ = parts
    rows = np.cumsum([0, *(part.pairs.shape[0] for part in parts)])
    pairs = PairRows(
        np.concatenate([part.pairs.features for part in parts]),
        np.concatenate([part.pairs.row + start for part, start in zip(parts, rows, strict=False)]),
        np.concatenate([part.pairs.column for part in parts]),
        (int(rows[-1]), first.pairs.shape[1]),
        first.pairs.vendors,
    )
    logs, plans = (np.concatenate([getattr(part, name) for part in parts]) for name in ("logs", "plans"))
    return replace(first, pairs=pairs, logs=logs, plans=plans)


def time_cells(matrix: TimeMatrix, target: Target, features: ChoiceFeatures) -> TimeCells:
    """Every time of a matrix of GEMMs, whose problems have no size of zero, over the product's floor on `target`."""
    pairs = _pair_rows(features, matrix.problems, matrix.solutions)
    seconds = matrix.seconds[pairs.row, pairs.column]
    ran = np.isfinite(seconds)
    floors = np.array([ProductNumbers.of(problem, target).floor for problem in matrix.problems])
    types = {kind.name: tuple(indices) for kind, indices in features.by_type.items()}
    plans = np.array([plan_features(matrix.plans.get(problem)) for problem in matrix.problems])
    return TimeCells(features.columns, types, pairs.only(ran), np.log(seconds[ran] / floors[pairs.row[ran]]), plans)
