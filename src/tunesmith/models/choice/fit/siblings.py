"""Times of a sibling, another device of the same architecture, translated to those of the device of a fit.

Both devices run the same kernels and the same library. So the ratio of their times is easier to expect than a time. A
forest learns it from products that both have measured, and thereby turns the times of products that the sibling alone
has measured into times of this device. The same holds for another data type that is as fast, such as bfloat16 for
float16: only the library has other kernels for it. A single matrix is a batch of one, whose times need no translation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.records import LibraryPlan, Problem, Target

from .cells import ChoiceFeatures, TimeCells, joined, time_cells
from .growing import regressor

FOREST: dict[str, Any] = {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.5}
LEAST_SHARED = 200
"""The fewest times that were measured by both, also without what is held out."""


class FewSharedError(ValueError):
    """A sibling has too few times that teach. `which` says in words which times count."""

    def __init__(self, count: int, which: str = "were measured by both") -> None:
        super().__init__(f"{count} times {which}, and {LEAST_SHARED} are needed")


@dataclass(frozen=True)
class Sibling:
    """Another device of the same architecture, another data type that is as fast, or single matrices beside batches:
    its times and its library's plans, by problems and solutions of the types of the fit. `plans_here` are the plans of
    the library on the device of the fit and for its types, where they are known. `name` says in words what it is. The
    times of single matrices beside batches are of the device of the fit, so they need no translation."""

    name: str
    target: Target
    matrix: TimeMatrix
    plans_here: Mapping[Problem, LibraryPlan]
    needs_translation: bool = True


@dataclass(frozen=True)
class SiblingCells:
    """The times of a sibling as cells: their features and plans are those on the device of the fit, and their
    logarithms are over the products' floors on the sibling.

    `families` has the family of each row, and `row_here` the number of the same product's row in the matrix of the
    fit, -1 if it has none. `needs_translation` is as in `Sibling`.
    """

    cells: TimeCells
    families: tuple[str, ...]
    row_here: NDArray[np.intp]
    needs_translation: bool

    @staticmethod
    def of(sibling: Sibling, matrix: TimeMatrix, features: ChoiceFeatures) -> SiblingCells:
        """The times of the solutions of `matrix`, whose features are `features`. A time of the library is left out if
        both plans are known and differ: it is of another kernel. Raises FewSharedError."""
        whole = sibling.matrix
        seconds = np.full((len(whole.problems), len(matrix.solutions)), np.nan)
        for column, solution in enumerate(matrix.solutions):
            if solution in whole.columns:
                seconds[:, column] = whole.seconds[:, whole.columns[solution]]
        differ = [_differ(sibling.plans_here.get(problem), whole.plans.get(problem)) for problem in whole.problems]
        vendors = [solution.kernel == VENDOR for solution in matrix.solutions]
        seconds[np.ix_(np.array(differ), np.array(vendors))] = np.nan
        rows = np.flatnonzero(np.isfinite(seconds).any(axis=1))
        problems = tuple(whole.problems[row] for row in rows)
        families = tuple(whole.families[row] for row in rows)
        rows_here = {problem.bare: row for row, problem in enumerate(matrix.problems)}
        row_here = np.array([rows_here.get(problem.bare, -1) for problem in problems], np.intp)
        both = np.isfinite(seconds[rows]) & np.isfinite(matrix.seconds[row_here]) & (row_here >= 0)[:, None]
        if sibling.needs_translation and (count := int(both.sum())) < LEAST_SHARED:
            raise FewSharedError(count)
        if (count := int(np.isfinite(seconds).sum())) < LEAST_SHARED:
            raise FewSharedError(count, "are of the sources' solutions")
        kept = TimeMatrix(problems, families, matrix.solutions, seconds[rows], plans=sibling.plans_here)
        return SiblingCells(time_cells(kept, sibling.target, features), families, row_here, sibling.needs_translation)

    def without(self, families: Collection[str]) -> SiblingCells:
        """The cells of products of other families; rows keep their numbers."""
        kept = np.array([family not in families for family in self.families])
        return replace(self, cells=self.cells.only(kept[self.cells.pairs.row]))

    def translated(self, here: TimeCells, seed: int) -> TimeCells:
        """The cells of products that are not in the matrix of the fit, with the times that this device is expected to
        take. `here` are the times of this device that teach the ratio. Raises FewSharedError."""
        pairs, rows = self.cells.pairs, self.row_here[self.cells.pairs.row]
        if not self.needs_translation:
            return self.cells.only(rows < 0)
        ratios = np.where(rows >= 0, here.times[rows, pairs.column], np.nan) - self.cells.logs
        is_shared, is_new = np.isfinite(ratios), rows < 0
        if (count := int(is_shared.sum())) < LEAST_SHARED:
            raise FewSharedError(count, "were measured by both without what is held out")
        new = self.cells.only(is_new)
        if not is_new.any():
            return new
        features = np.column_stack([pairs.features, self.cells.logs]).astype(np.float32)
        forest = regressor("ExtraTreesRegressor")(random_state=seed, n_jobs=-1, **FOREST).fit(
            features[is_shared], ratios[is_shared]
        )
        # Not `forest.predict`, which adds the trees in the order in which threads finish.
        expected = sum(tree.predict(features[is_new]) for tree in forest.estimators_)
        return replace(new, logs=new.logs + expected / FOREST["n_estimators"])


def with_siblings(
    here: TimeCells, siblings: Sequence[SiblingCells], seed: int, left_out: Collection[str] = ()
) -> TimeCells:
    """The times of this device, and after them those of the siblings, translated; none of products of the families that
    are `left_out`. Raises FewSharedError."""
    others = [sibling.without(left_out).translated(here, seed) for sibling in siblings]
    return joined([here, *others]) if others else here


def _differ(here: LibraryPlan | None, there: LibraryPlan | None) -> bool:
    """Whether two plans are known and are of different kernels. The waves of one kernel depend on the compute units."""
    return here is not None and there is not None and replace(here, waves=there.waves) != there
