"""What a model expects of products whose families were held out of its fit, and what follows for its doubts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.intensity.fit.bootstrap import drawn_counts
from tunesmith.models.intensity.fit.cross_validation import fold_numbers

from .cells import PairRows, TimeCells
from .growing import grown
from .siblings import SiblingCells, with_siblings

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Rows = NDArray[np.bool_]

FOLDS = 6
NEAR = 0.2
"""Expected times count for the doubt if their logarithm is at most this much above the least: those that compete."""
CAUTIONS = (*(step / 20 for step in range(40)), 2.0, 2.5, 3.0, 4.0)
RESAMPLES = 400
"""So many draws of the products decide on the caution. Products are drawn, since a list has too few families."""
LOST_BELOW, LOSS_WEIGHT = 0.97, 100.0
"""Whoever loads a logic instead of calling the vendor's library must not regret it. So what a choice loses below
LOST_BELOW of the library's speed, and beyond the times' noise, counts LOSS_WEIGHT times as much as what another gains.
Four lists of an H200 were looked at before this weight was taken (benchmarks/recorded/choice_h200)."""
FEW, FEW_CAUTION = 1000, 1.5
"""With fewer products than FEW that the vendor ran, the least caution: that few of them lose says little. With
cautions of 1.15 and 1.25, by 523 products in TF32 and 201 in float8, 5 of 450 and 1 of 200 others were wholly below
0.97 of the library's speed. With 1.5 they go to the library (H200, 2026-11-29;
benchmarks/recorded/choice_h200_types)."""


@dataclass(frozen=True)
class HeldOutTimes:
    """What models expect of products whose families they were not fitted on.

    `logs` are logarithms of expected times over the products' floors, `doubts` their doubts, and `times` the logarithms
    of the measured times: a row for each product, a column for each solution, NaN where the solution did not run.
    `folds` has the fold of each product. `vendors` marks the columns of the vendor's library.
    """

    logs: Floats
    doubts: Floats
    times: Floats
    folds: Indices
    vendors: Rows

    def only(self, rows: Rows) -> HeldOutTimes:
        return HeldOutTimes(self.logs[rows], self.doubts[rows], self.times[rows], self.folds[rows], self.vendors)


def held_out_times(
    families: Sequence[str],
    cells: TimeCells,
    unmeasured: PairRows,
    seed: int,
    siblings: Sequence[SiblingCells] = (),
) -> HeldOutTimes:
    """The expectations for every time of this device. Whole families are held out, of its times and of the siblings'.
    Raises ValueError for a single family, and FewSharedError."""
    folds = fold_numbers(families, FOLDS, seed)
    logs, doubts = np.empty(len(cells.logs)), np.empty(len(cells.logs))
    for fold in np.unique(folds):
        out = (folds == fold)[cells.pairs.row]
        left_out = {family for family, number in zip(families, folds, strict=True) if number == fold}
        taught, asked = with_siblings(cells.only(~out), siblings, seed, left_out), cells.only(out)
        model = grown(taught, unmeasured, seed)
        features, expected = asked.pairs.features, model.times.predict(asked.pairs.features)
        if model.library:
            expected[asked.planned] = model.library.predict(asked.planned_features)
        logs[out], doubts[out] = expected, np.exp(model.doubts.predict(features))
    table = cells.pairs.table
    return HeldOutTimes(table(logs), table(doubts), cells.times, folds, cells.pairs.vendors)


@dataclass(frozen=True)
class Trust:
    """How far expected times can be trusted: the factor from a model's doubts to the errors that it made, and how much
    of the doubt a gain over the vendor's library must exceed."""

    factor: float
    caution: float

    @staticmethod
    def of(held_out: HeldOutTimes, noise: float, seed: int = 0) -> Trust:
        """Choices are worth what they gain in all beside the vendor's library, less what they lose (LOSS_WEIGHT). A few
        products decide with which caution they are worth most. So RESAMPLES times as many products are drawn, each draw
        has the best of CAUTIONS, the least of several, and the caution is the one of these that is nearest to their
        mean.

        `noise` is the relative half-width of a time's interval, not NaN; that of a ratio of two times is sqrt(2) times
        as wide."""
        factor, vendors, numbers = doubt_factor(held_out), _vendors(held_out), np.arange(len(held_out.logs))
        least = FEW_CAUTION if 0 < np.count_nonzero(np.isfinite(vendors)) < FEW else 0.0
        cautions = np.array(CAUTIONS)
        border = math.log(LOST_BELOW) - math.sqrt(2) * noise

        def worths_of(caution: float) -> Floats:
            """Of the products, in logarithms of time. One without the vendor's time has no say."""
            chosen = np.nanargmin(Trust(factor, caution).cautious(held_out), axis=1)
            gains = np.nan_to_num(vendors - held_out.times[numbers, chosen])
            # The gains have each loss once.
            worths: Floats = gains + (LOSS_WEIGHT - 1) * np.minimum(gains - border, 0.0)
            return worths

        of_cautions = np.column_stack([worths_of(caution) for caution in cautions.tolist()])
        best = cautions[(drawn_counts(len(numbers), RESAMPLES, seed) @ of_cautions).argmax(axis=1)]
        return Trust(factor, max(least, float(best[np.abs(best - best.mean()).argmin()])))

    def cautious(self, held_out: HeldOutTimes) -> Floats:
        """The expected logarithms, with the doubt on top for our own solutions."""
        logs: Floats = held_out.logs + self.caution * self.factor * held_out.doubts * ~held_out.vendors
        return logs


def doubt_factor(held_out: HeldOutTimes) -> float:
    """The root mean square of errors of ratios to the vendor's time, over that of their doubts; of ratios to the
    expected fastest where there is no vendor. Expected times count that compete."""
    logs, times, doubts = held_out.logs, held_out.times, held_out.doubts
    numbers = np.arange(len(logs))
    fastest = np.nanargmin(logs, axis=1)
    vendor = np.where(np.isfinite(logs) & held_out.vendors, logs, np.inf)
    reference = np.where(np.isfinite(vendor.min(axis=1)), vendor.argmin(axis=1), fastest)
    errors = (times - times[numbers, reference][:, None]) - (logs - logs[numbers, reference][:, None])
    competes = (logs - logs[numbers, fastest][:, None] <= NEAR) & ~held_out.vendors
    competes[numbers, reference] = False
    if not competes.any():
        return 1.0
    return float(np.sqrt((errors[competes] ** 2).mean() / (doubts[competes] ** 2).mean()))


def _vendors(held_out: HeldOutTimes) -> Floats:
    """The logarithm of the vendor's time at each product; NaN where it did not run."""
    times = np.where(held_out.vendors & np.isfinite(held_out.times), held_out.times, np.inf).min(axis=1)
    return np.where(np.isfinite(times), times, np.nan)
