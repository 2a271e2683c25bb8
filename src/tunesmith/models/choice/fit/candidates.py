"""The part of a matrix that a choice model is fitted to and may choose from.

The steps of a tuning measure many solutions on a few products. What a model expects of these solutions elsewhere is
extrapolated, and held-out products cannot judge it: they have no times of them. So such solutions are not offered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.intensity.scoring import TimeMatrix

LEAST_SHARE = 0.1
"""The least share of a type's products on which a solution must have run."""


@dataclass(frozen=True)
class CandidateTimes:
    """The solutions of a matrix that ran on enough products, on the products that have one of them.

    `rows` are the rows of `matrix` in the whole matrix, and `best` the best times there, of all solutions.
    """

    matrix: TimeMatrix
    rows: NDArray[np.intp]
    best: NDArray[np.float64]

    @staticmethod
    def of(whole: TimeMatrix) -> CandidateTimes:
        ran = np.isfinite(whole.seconds)
        products = Counter(problem.type for problem in whole.problems)
        needed = np.array([LEAST_SHARE * products[solution.type] for solution in whole.solutions])
        columns = np.flatnonzero(ran.sum(axis=0) >= np.maximum(1, needed))
        rows = np.flatnonzero(ran[:, columns].any(axis=1))
        matrix = TimeMatrix(
            tuple(whole.problems[row] for row in rows),
            tuple(whole.families[row] for row in rows),
            tuple(whole.solutions[column] for column in columns),
            whole.seconds[np.ix_(rows, columns)],
        )
        return CandidateTimes(matrix, rows, whole.best[rows])
