"""What a model expects of products, or of whole families, that were held out of its fit, and what follows for its
doubts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.choice.trees import TreeEnsemble
from tunesmith.models.intensity.fit.bootstrap import drawn_counts
from tunesmith.models.intensity.fit.cross_validation import fold_numbers

from .cells import PairRows, TimeCells
from .growing import grown, grown_doubts
from .library import LibraryTimes
from .siblings import SiblingCells, with_siblings

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Rows = NDArray[np.bool_]

FOLDS = 6
COMPETING = 4
"""So many of our own solutions count for the doubts at each product, those that are expected to be fastest."""
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
    """What models expect of products that they were not fitted on.

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

    @property
    def errors(self) -> Floats:
        return ratio_errors(self.logs, self.times, self.vendors)


@dataclass(frozen=True)
class HeldOutExpectations:
    """What is expected of products of families that were held out, for scores; and of products that were held out by
    themselves, for trust: a list fills the space of sizes, so that most products that a program has are like some of
    it."""

    families: HeldOutTimes
    products: HeldOutTimes


def held_out_times(
    families: Sequence[str],
    cells: TimeCells,
    seed: int,
    siblings: Sequence[SiblingCells] = (),
    library: LibraryTimes | None = None,
) -> HeldOutExpectations:
    """The expectations for every time of this device. Of a family that is held out, the siblings' times are left out,
    too, and those of the `library` alone, but for the speed of their hour. Its doubts are learned from the errors on
    products of other families, by models that were taught its times.

    Raises ValueError for a single family, and FewSharedError.
    """
    pairs, table = cells.pairs, cells.pairs.table
    by_family = fold_numbers(families, FOLDS, seed)
    by_product = fold_numbers([str(row) for row in range(len(families))], FOLDS, seed)
    of_families = _expected(by_family, cells, seed, siblings, library, families)
    of_products = _expected(by_product, cells, seed, siblings, library)
    errors = ratio_errors(table(of_products), cells.times, pairs.vendors)

    def with_doubts(logs: Floats, folds: Indices) -> HeldOutTimes:
        doubts = np.empty(len(logs))
        for fold in np.unique(folds):
            out = (folds == fold)[pairs.row]
            doubts[out] = np.exp(doubts_from(pairs.only(~out), errors, seed).predict(pairs.features[out]))
        return HeldOutTimes(table(logs), table(doubts), cells.times, folds, pairs.vendors)

    return HeldOutExpectations(with_doubts(of_families, by_family), with_doubts(of_products, by_product))


def _expected(
    folds: Indices,
    cells: TimeCells,
    seed: int,
    siblings: Sequence[SiblingCells],
    library: LibraryTimes | None,
    families: Sequence[str] = (),
) -> Floats:
    """The expected logarithm of each time by a model that was taught without its fold, and without the fold's families
    of the siblings and of the library. Without `families` nothing more is left out: products of this device are none of
    a sibling's that teach, and none of the library's."""
    logs = np.empty(len(cells.logs))
    for fold in np.unique(folds):
        out = (folds == fold)[cells.pairs.row]
        left_out = {families[row] for row in np.flatnonzero(folds == fold).tolist()} if families else set()
        taught, asked = with_siblings(cells.only(~out), siblings, seed, left_out), cells.only(out)
        model = grown(taught, seed, library and library.without(left_out))
        logs[out] = model.times.predict(asked.pairs.features)
        if model.library:
            logs[np.flatnonzero(out)[asked.planned]] = model.library.predict(asked.planned_features)
    return logs


def doubts_from(pairs: PairRows, errors: Floats, seed: int) -> TreeEnsemble:
    """The trees of doubts, from those of the pairs that have an error in the table of `ratio_errors`."""
    of_pairs = errors[pairs.row, pairs.column]
    known = np.isfinite(of_pairs)
    return grown_doubts(pairs.features[known], of_pairs[known], seed)


def ratio_errors(logs: Floats, times: Floats, vendors: Rows) -> Floats:
    """How far ratios of times are off, in logarithms, as a table like `logs`: of our own solutions that compete, to the
    vendor's library, or to the expected fastest where there is none; of the vendor, to the expected fastest of the
    others. NaN for other pairs."""
    numbers = np.arange(len(logs))
    own, vendor = (np.where(np.isfinite(logs) & kind, logs, np.inf) for kind in (~vendors, vendors))
    (fastest, has_own), (library, has_library) = (
        (of.argmin(axis=1), np.isfinite(of).any(axis=1)) for of in (own, vendor)
    )
    off = times - logs
    reference = np.where(has_library, library, fastest)
    errors: Floats = off - off[numbers, reference][:, None]
    places = own.argsort(axis=1).argsort(axis=1)
    errors[(places >= COMPETING) | ~np.isfinite(own)] = np.nan
    errors[numbers, reference] = np.nan
    both = has_own & has_library
    errors[numbers[both], library[both]] = (off[numbers, library] - off[numbers, fastest])[both]
    return errors


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
    """The root mean square of the errors of our own solutions that compete, over that of their doubts."""
    errors = held_out.errors
    competes = np.isfinite(errors) & ~held_out.vendors
    if not competes.any():
        return 1.0
    return float(np.sqrt((errors[competes] ** 2).mean() / (held_out.doubts[competes] ** 2).mean()))


def _vendors(held_out: HeldOutTimes) -> Floats:
    """The logarithm of the vendor's time at each product; NaN where it did not run."""
    times = np.where(held_out.vendors & np.isfinite(held_out.times), held_out.times, np.inf).min(axis=1)
    return np.where(np.isfinite(times), times, np.nan)
