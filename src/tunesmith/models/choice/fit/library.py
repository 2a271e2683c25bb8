"""Times of the vendor's library alone, at products where nothing else was measured.

Every choice rests on the library's time, which is the hardest to expect, and which is measured fifty times as fast as
all solutions are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.models.choice.features import ProductNumbers
from tunesmith.models.choice.plans import plan_features, with_plans
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.records import LibraryPlan, Problem, Target

from .cells import ChoiceFeatures, TimeCells
from .growing import grown_library

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LibraryRun:
    """A product that the library computed in so many `seconds`, by its `plan`; the product's family; and a name for the
    hour, the file that has it."""

    problem: Problem
    family: str
    plan: LibraryPlan
    seconds: float
    hour: str


@dataclass(frozen=True)
class LibraryTimes:
    """Runs as lessons: a row of features with those of the plan behind for each, the logarithms of the times over the
    products' floors, and the families and hours."""

    features: Floats
    logs: Floats
    families: NDArray[np.str_]
    hours: NDArray[np.str_]

    @staticmethod
    def of(
        runs: Sequence[LibraryRun], matrix: TimeMatrix, features: ChoiceFeatures, target: Target
    ) -> LibraryTimes | None:
        """The last run of each product that the matrix has not, of types for which it has the library. None if there is
        no such run."""
        row_of_library = {
            kind: row
            for kind, indices in features.by_type.items()
            for row, index in enumerate(indices)
            if matrix.solutions[index].kernel == VENDOR
        }
        known = {problem.bare for problem in matrix.problems}
        new = {
            run.problem.bare: run
            for run in runs
            if run.problem.type in row_of_library and run.problem.bare not in known
        }
        if not new:
            return None
        kept = [*new.values()]
        rows = np.array([features.rows(run.problem)[row_of_library[run.problem.type]] for run in kept])
        floors = np.array([ProductNumbers.of(run.problem, target).floor for run in kept])
        return LibraryTimes(
            with_plans(rows, np.array([plan_features(run.plan) for run in kept])),
            np.log(np.array([run.seconds for run in kept]) / floors),
            np.array([run.family for run in kept]),
            np.array([run.hour for run in kept]),
        )

    def __len__(self) -> int:
        return len(self.logs)

    def without(self, families: Collection[str]) -> LibraryTimes:
        """The times at products of other families."""
        kept = ~np.isin(self.families, list(families))
        return LibraryTimes(self.features[kept], self.logs[kept], self.families[kept], self.hours[kept])

    def beside(self, cells: TimeCells, seed: int) -> LibraryTimes:
        """The times as if they had been measured in the hours of the cells: clocks differ by a few percent, and a
        choice compares the library with kernels of those hours. So the median of what an hour's times are off, by trees
        that only the cells teach, is taken away. It is one number for all products, also those that are held out."""
        expected = grown_library(cells.planned_features, cells.logs[cells.planned], seed).predict(self.features)
        logs = self.logs.copy()
        for hour in np.unique(self.hours):
            its = self.hours == hour
            logs[its] -= np.median(self.logs[its] - expected[its])
        return replace(self, logs=logs)
