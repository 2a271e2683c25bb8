"""A matrix of times as rows of features: one for each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.choice.columns import ParameterColumn, columns_of, numbers_of
from tunesmith.models.choice.features import ProductNumbers, SolutionNumbers
from tunesmith.models.choice.model import features_of, place_of
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.problems.gemm import Gemm
from tunesmith.records import ProblemType, Solution, Target

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class TimeCells:
    """The times of a matrix, an entry for each: its `features`, the `logs` of time over the product's floor, and its
    row and column in the matrix. `points` has the place of each row (`place_of`)."""

    columns: tuple[ParameterColumn, ...]
    features: Floats
    logs: Floats
    row: Indices
    column: Indices
    points: Floats

    def table(self, logs: Floats, shape: tuple[int, int]) -> Floats:
        """Logarithms of the cells as a matrix, NaN where there is no time."""
        table = np.full(shape, np.nan)
        table[self.row, self.column] = logs
        return table


def time_cells(matrix: TimeMatrix, target: Target) -> TimeCells:
    """Every time of a matrix of GEMMs, whose problems have no size of zero."""
    columns = columns_of(matrix.solutions)
    by_type = _columns_by_type(matrix.solutions)
    bytes_of: dict[ProblemType, tuple[list[int], Floats, SolutionNumbers]] = {}
    features, logs, rows, found = [], [], [], []
    for row, problem in enumerate(matrix.problems):
        product = ProductNumbers.of(problem, target)
        if problem.type not in bytes_of:
            indices = by_type[problem.type]
            solutions = [matrix.solutions[index] for index in indices]
            numbers = SolutionNumbers.of(solutions, target, product.situation.element_bytes)
            bytes_of[problem.type] = indices, numbers_of(columns, solutions), numbers
        indices, of_columns, numbers = bytes_of[problem.type]
        seconds = matrix.seconds[row, indices]
        ran = np.isfinite(seconds)
        features.append(features_of(product, of_columns, numbers)[ran])
        logs.append(np.log(seconds[ran] / product.floor))
        rows.append(np.full(ran.sum(), row))
        found.append(np.array(indices)[ran])
    return TimeCells(
        columns,
        np.concatenate(features),
        np.concatenate(logs),
        np.concatenate(rows),
        np.concatenate(found),
        np.array([place_of(Gemm.of(problem)) for problem in matrix.problems]),
    )


def _columns_by_type(solutions: Sequence[Solution]) -> dict[ProblemType, list[int]]:
    indices: dict[ProblemType, list[int]] = {}
    for index, solution in enumerate(solutions):
        indices.setdefault(solution.type, []).append(index)
    return indices
