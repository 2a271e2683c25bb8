"""What a model expects on products whose groups were held out of its fit, and what follows: doubts and caution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import VENDOR
from tunesmith.models.choice.model import DoubtCurve
from tunesmith.models.intensity.fit.cross_validation import fold_numbers
from tunesmith.models.intensity.scoring import TimeMatrix

from .cells import TimeCells
from .growing import grown

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Rows = NDArray[np.bool_]

FOLDS = 6
NEAR = 0.2
"""Expected times count for the doubt if their logarithm is at most this much above the least: those that compete."""
DISTANCE_STEPS = 5
CAUTIONS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class HeldOutTimes:
    """What models expect of products whose groups they were not fitted on.

    `logs` are logarithms of expected times over the products' floors: a row for each product, a column for each
    solution, NaN where the solution did not run. `times` are those of the measured times. `folds` has the fold of each
    product, and `distances` its distance to the nearest product outside of the fold.
    """

    logs: Floats
    times: Floats
    folds: Indices
    distances: Floats


def held_out_times(matrix: TimeMatrix, cells: TimeCells, seed: int) -> HeldOutTimes:
    """The expectations for every time, with whole families held out. Raises ValueError for a single family."""
    folds = fold_numbers(matrix.families, FOLDS, seed)
    logs, distances = np.empty(len(cells.logs)), np.empty(len(folds))
    for fold in np.unique(folds):
        out = folds == fold
        cells_out = out[cells.row]
        trees = grown(cells.features[~cells_out], cells.logs[~cells_out], seed)
        logs[cells_out] = trees.predict(cells.features[cells_out])
        distances[out] = nearest_distances(cells.points[out], cells.points[~out])
    shape = matrix.seconds.shape
    return HeldOutTimes(cells.table(logs, shape), cells.table(cells.logs, shape), folds, distances)


def nearest_distances(points: Floats, others: Floats) -> Floats:
    """The distance of each point to the nearest of the others."""
    from scipy.spatial.distance import cdist

    distances: Floats = cdist(points, others).min(axis=1)
    return distances


@dataclass(frozen=True)
class Doubts:
    """How far expected times can be trusted: the doubt by distance, and how much of the doubt a gain must exceed."""

    curve: DoubtCurve
    caution: float

    @staticmethod
    def of(matrix: TimeMatrix, held_out: HeldOutTimes, rows: Rows) -> Doubts:
        """By these rows of a matrix. The caution is that with the best geometric mean of best time over chosen time;
        of equals, the greatest."""
        curve = doubt_curve(held_out, rows)
        own = [solution.kernel != VENDOR for solution in matrix.solutions]
        scored = []
        for caution in CAUTIONS:
            doubts = Doubts(curve, caution)
            chosen = np.nanargmin(doubts.cautious(held_out, own), axis=1)
            efficiencies = matrix.best / matrix.seconds[np.arange(len(chosen)), chosen]
            scored.append((float(np.log(efficiencies[rows]).mean()), caution))
        return Doubts(curve, max(scored)[1])

    def cautious(self, held_out: HeldOutTimes, own: Sequence[bool]) -> Floats:
        """The expected logarithms, with the doubt on top for our `own` solutions."""
        doubts = np.array([self.curve.at(distance) for distance in held_out.distances])
        logs: Floats = held_out.logs + self.caution * doubts[:, None] * np.array(own)
        return logs


def doubt_curve(held_out: HeldOutTimes, rows: Rows) -> DoubtCurve:
    """How far ratios of expected times to that of the expected fastest were off on these rows, by the products'
    distances. A larger distance never has less doubt."""
    logs, times, distances = held_out.logs[rows], held_out.times[rows], held_out.distances[rows]
    numbers, picks = np.arange(len(logs)), np.nanargmin(logs, axis=1)
    gaps = logs - logs[numbers, picks][:, None]
    errors = times - times[numbers, picks][:, None] - gaps
    squares = np.where((gaps <= NEAR) & (gaps > 0), errors**2, np.nan)
    known = np.isfinite(squares).any(axis=1)
    spreads_of, distances = np.nanmean(squares[known], axis=1), distances[known]
    order = np.argsort(distances, kind="stable")
    parts = [part for part in np.array_split(order, DISTANCE_STEPS) if len(part)]
    spreads = np.maximum.accumulate([float(np.sqrt(spreads_of[part].mean())) for part in parts])
    return DoubtCurve(tuple(float(np.median(distances[part])) for part in parts), tuple(spreads.tolist()))
