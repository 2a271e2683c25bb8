"""The part of a matrix that a choice model is fitted to and may choose from.

The steps of a tuning measure many solutions on a few products. What a model expects of these solutions elsewhere is
extrapolated, and held-out products cannot judge it: they have no times of them. So such solutions are not offered.
Those that are legal at a few products only, such as vectors, are, if they ran there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import KERNELS, has_kernel_of
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.records import Problem, ProblemType, Solution, Target

LEAST_SHARE, LEAST_LEGAL_SHARE = 0.1, 0.5
"""A solution must have run on the least share of its type's products, or of those at which it is legal."""


@dataclass(frozen=True)
class CandidateTimes:
    """The solutions of a matrix that ran on enough products, on the products that have one of them.

    `rows` are the rows of `matrix` in the whole matrix, and `best` the best times there, of all solutions.
    """

    matrix: TimeMatrix
    rows: NDArray[np.intp]
    best: NDArray[np.float64]

    @staticmethod
    def of(whole: TimeMatrix, target: Target) -> CandidateTimes:
        ran = np.isfinite(whole.seconds)
        products: dict[ProblemType, list[Problem]] = defaultdict(list)
        for problem in whole.problems:
            products[problem.type].append(problem)
        counts = zip(whole.solutions, ran.sum(axis=0).tolist(), strict=True)
        columns = np.flatnonzero([_ran_on_enough(s, count, products[s.type], target) for s, count in counts])
        rows = np.flatnonzero(ran[:, columns].any(axis=1))
        matrix = TimeMatrix(
            tuple(whole.problems[row] for row in rows),
            tuple(whole.families[row] for row in rows),
            tuple(whole.solutions[column] for column in columns),
            whole.seconds[np.ix_(rows, columns)],
            plans=whole.plans,
        )
        return CandidateTimes(matrix, rows, whole.best[rows])


def _ran_on_enough(solution: Solution, count: int, products: Sequence[Problem], target: Target) -> bool:
    if not count or count >= LEAST_SHARE * len(products):
        return bool(count)
    if not has_kernel_of(solution, target):
        return False
    family, config = KERNELS[solution.kernel], solution.configuration
    if any(family.rejections(config, solution.type, target)):
        return False
    legal = (problem for problem in products if not any(family.rejections_for(config, problem, target)))
    most = int(count / LEAST_LEGAL_SHARE)
    return 0 < sum(1 for _ in islice(legal, most + 1)) <= most
