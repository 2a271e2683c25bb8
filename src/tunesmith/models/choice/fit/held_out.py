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

FOLDS = 6
NEAR = 0.2
"""Expected times count for the doubt if their logarithm is at most this much above the least: those that compete."""
DISTANCE_STEPS = 5
CAUTIONS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class HeldOutTimes:
    """Logarithms of expected times over the products' floors, by a model without the product's group: a row for each
    product, a column for each solution, NaN where the solution did not run. `distances` are those of products to the
    nearest product that the model was fitted on."""

    logs: Floats
    distances: Floats


def held_out_times(cells: TimeCells, shape: tuple[int, int], groups: Sequence[str], seed: int) -> HeldOutTimes:
    """The expectations for every time. Raises ValueError for fewer than two groups."""
    folds = fold_numbers(groups, FOLDS, seed)
    logs, distances = np.empty(len(cells.logs)), np.empty(len(folds))
    for fold in np.unique(folds):
        out = folds == fold
        cells_out = out[cells.row]
        trees = grown(cells.features[~cells_out], cells.logs[~cells_out], seed)
        logs[cells_out] = trees.predict(cells.features[cells_out])
        distances[out] = nearest_distances(cells.points[out], cells.points[~out])
    return HeldOutTimes(cells.table(logs, shape), distances)


def nearest_distances(points: Floats, others: Floats) -> Floats:
    """The distance of each point to the nearest of the others."""
    squares = ((points[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)
    distances: Floats = np.sqrt(squares.min(axis=1))
    return distances


def doubt_curve(times: Floats, held_out: HeldOutTimes) -> DoubtCurve:
    """How far ratios of expected times to that of the expected fastest were off, by the products' distances. `times`
    has the logarithms of the measured times, as `held_out.logs`. A larger distance never has less doubt."""
    rows = np.arange(len(times))
    picks = np.nanargmin(held_out.logs, axis=1)
    gap = held_out.logs - held_out.logs[rows, picks][:, None]
    error = times - times[rows, picks][:, None] - gap
    competes = np.isfinite(error) & (gap <= NEAR) & (gap > 0)
    spread_of_row = np.array([_square(error[row, competes[row]]) for row in rows])
    known = np.isfinite(spread_of_row)
    order = np.argsort(held_out.distances[known], kind="stable")
    parts = [part for part in np.array_split(order, DISTANCE_STEPS) if len(part)]
    distances = [float(np.median(held_out.distances[known][part])) for part in parts]
    spreads = np.maximum.accumulate([float(np.sqrt(spread_of_row[known][part].mean())) for part in parts])
    return DoubtCurve(tuple(distances), tuple(spreads.tolist()))


def _square(errors: Floats) -> float:
    return float((errors**2).mean()) if len(errors) else np.nan


def best_caution(matrix: TimeMatrix, held_out: HeldOutTimes, doubts: DoubtCurve) -> float:
    """The caution with the best geometric mean of best time over chosen time; of equals, the most cautious."""
    scores = [(geomean_log(matrix, cautious(matrix, held_out, doubts, caution)), caution) for caution in CAUTIONS]
    return max(scores)[1]


def cautious(matrix: TimeMatrix, held_out: HeldOutTimes, doubts: DoubtCurve, caution: float) -> Floats:
    """The expected logarithms with the doubt on top, except for the vendor's library."""
    doubt = np.array([doubts.at(distance) for distance in held_out.distances])
    own = np.array([solution.kernel != VENDOR for solution in matrix.solutions])
    return held_out.logs + caution * doubt[:, None] * own


def geomean_log(matrix: TimeMatrix, expected: Floats) -> float:
    """The mean logarithm of best time over the time of what is expected to be the fastest."""
    rows = np.arange(len(expected))
    chosen = matrix.seconds[rows, np.nanargmin(expected, axis=1)]
    return float(np.log(matrix.best / chosen).mean())
