"""A choice model from a matrix of times: trees on all of it, doubts and scores from held-out groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.models.choice.model import ChoiceModel, ChoiceOrigin
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.records import Target

from .cells import time_cells
from .growing import grown
from .held_out import Doubts, held_out_times

Floats = NDArray[np.float64]
LEAST_TIMES = 200
"""The fewest times of a fit."""
TOP = 3


@dataclass(frozen=True)
class ChoiceFit:
    """A model, and the efficiency (best time / time of the choice) at each product whose group was held out."""

    model: ChoiceModel
    efficiencies: Floats


def fit_choice(
    matrix: TimeMatrix, target: Target, data_type: str, sources: tuple[str, ...], made: tuple[str, str], seed: int = 0
) -> ChoiceFit:
    """The model of a device's matrix. `made` is the version of tunesmith, and the date.

    Raises ValueError for fewer than LEAST_TIMES times and for a single family.
    """
    cells = time_cells(matrix, target)
    if len(cells.logs) < LEAST_TIMES:
        raise ValueError(f"{len(cells.logs)} times, {LEAST_TIMES} are needed")
    held_out = held_out_times(matrix, cells, seed)
    doubts = Doubts.of(matrix, held_out, np.ones(len(matrix.problems), bool))
    expected = doubts.cautious(held_out, [solution.kernel != VENDOR for solution in matrix.solutions])
    efficiencies = best_of_first(matrix, expected, 1)
    model = ChoiceModel(
        ChoiceOrigin(sources, len(matrix.problems), len(cells.logs), len(set(matrix.families)), *made),
        target,
        data_type,
        tuple(sorted({problem.type.name for problem in matrix.problems})),
        tuple(dict.fromkeys((solution.kernel, solution.configuration) for solution in matrix.solutions)),
        cells.columns,
        grown(cells.features, cells.logs, seed),
        cells.points,
        doubts.curve,
        doubts.caution,
        _scores(efficiencies, best_of_first(matrix, expected, TOP)),
    )
    return ChoiceFit(model, efficiencies)


def best_of_first(matrix: TimeMatrix, expected: Floats, count: int) -> Floats:
    """Best time over the best of the first `count` solutions by expected time, for each product."""
    first = np.argsort(np.where(np.isfinite(expected), expected, np.inf), axis=1)[:, :count]
    efficiencies: Floats = matrix.best / np.nanmin(np.take_along_axis(matrix.seconds, first, axis=1), axis=1)
    return efficiencies


def _scores(first: Floats, top: Floats) -> Mapping[str, float]:
    return {
        "geomean": math.exp(float(np.log(first).mean())),
        "percentile-10": float(np.quantile(first, 0.1)),
        "worst": float(first.min()),
        f"top-{TOP}": math.exp(float(np.log(top).mean())),
    }
