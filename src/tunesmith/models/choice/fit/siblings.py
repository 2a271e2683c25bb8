"""Times of a sibling, another device of the same architecture, translated to those of the device of a fit.

Both run the same kernels and the same library, on chips that differ in memory and clock. So the ratio of their times
is easier to expect than a time. A forest learns it from products that both have measured, and thereby turns what the
sibling alone has measured into times of this device.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.records import Configuration, LibraryPlan, Problem, Target

from .cells import ChoiceFeatures, TimeCells, joined, time_cells
from .growing import regressors

FOREST: dict[str, Any] = {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.5}
LEAST_SHARED = 200
"""The fewest times that both devices have measured."""


@dataclass(frozen=True)
class Sibling:
    """Another device of the same architecture, with its times. `plans` are those of this device's library for the
    products of `matrix`, where they are known."""

    target: Target
    matrix: TimeMatrix
    plans: Mapping[Problem, LibraryPlan]


@dataclass(frozen=True)
class SiblingCells:
    """The times of a sibling as cells: their features and plans are those on the device of the fit, and their
    logarithms are over the products' floors on the sibling.

    `families` has the family of each row, and `measured` the row of the same product in the matrix of the fit, -1 if
    it has none.
    """

    cells: TimeCells
    families: tuple[str, ...]
    measured: NDArray[np.intp]

    @staticmethod
    def of(sibling: Sibling, matrix: TimeMatrix, features: ChoiceFeatures) -> SiblingCells:
        """The times of the solutions of `matrix`, whose features are `features`. A time of the library is left out if
        its plans on both devices are known and differ: it is of another kernel."""
        whole, known = sibling.matrix, sibling.matrix.columns
        seconds = np.full((len(whole.problems), len(matrix.solutions)), np.nan)
        for column, solution in enumerate(matrix.solutions):
            if solution in known:
                seconds[:, column] = whole.seconds[:, known[solution]]
        pairs = ((sibling.plans.get(problem), whole.plans.get(problem)) for problem in whole.problems)
        differ = np.array([here is not None and there is not None and here != there for here, there in pairs])
        vendors = np.array([solution.kernel == VENDOR for solution in matrix.solutions])
        seconds[np.ix_(differ, vendors)] = np.nan
        of_type = np.array([problem.type in features.by_type for problem in whole.problems])
        rows = np.flatnonzero(of_type & np.isfinite(seconds).any(axis=1))
        rows_here = {_bare(problem): row for row, problem in enumerate(matrix.problems)}
        problems = tuple(whole.problems[row] for row in rows)
        families = tuple(whole.families[row] for row in rows)
        kept = TimeMatrix(problems, families, matrix.solutions, seconds[rows], plans=sibling.plans)
        measured = np.array([rows_here.get(_bare(problem), -1) for problem in problems], np.intp)
        return SiblingCells(time_cells(kept, sibling.target, features), families, measured)

    def without(self, families: Collection[str]) -> SiblingCells:
        """The cells of products of other families; rows keep their numbers."""
        kept = np.array([family not in families for family in self.families])
        return replace(self, cells=self.cells.only(kept[self.cells.pairs.row]))

    def translated(self, here: TimeCells, seed: int) -> TimeCells:
        """The cells of products that are not in the matrix of the fit, with the times that this device is expected to
        take. `here` are the times of this device that teach the ratio. Raises ValueError if it has too few of the
        same products."""
        pairs, rows = self.cells.pairs, self.measured[self.cells.pairs.row]
        ratios = np.where(rows >= 0, here.times[rows, pairs.column], np.nan) - self.cells.logs
        is_shared = np.isfinite(ratios)
        if (count := np.count_nonzero(is_shared)) < LEAST_SHARED:
            raise ValueError(f"{count} times are of products that the sibling measured, too, {LEAST_SHARED} are needed")
        asked = np.column_stack([pairs.features, self.cells.logs]).astype(np.float32)
        forest_of, _ = regressors()
        forest = forest_of(random_state=seed, n_jobs=-1, **FOREST).fit(asked[is_shared], ratios[is_shared])
        is_new = rows < 0
        new = self.cells.only(is_new)
        # Not `forest.predict`, which adds the trees in the order in which threads finish.
        expected = sum(tree.predict(asked[is_new]) for tree in forest.estimators_) if is_new.any() else 0.0
        return replace(new, logs=new.logs + expected / FOREST["n_estimators"])


def with_siblings(
    here: TimeCells, siblings: Sequence[SiblingCells], seed: int, left_out: Collection[str] = ()
) -> TimeCells:
    """The times of this device, and after them those of the siblings, translated; none of products of the families that
    are `left_out`. Raises ValueError if a sibling has too few of the same products."""
    return joined([here, *(sibling.without(left_out).translated(here, seed) for sibling in siblings)])


def _bare(problem: Problem) -> Problem:
    """The problem without its scalars, which a table does not tell."""
    return replace(problem, scalars=Configuration())
