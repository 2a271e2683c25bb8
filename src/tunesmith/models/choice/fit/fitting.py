"""A choice model from a matrix of times: trees on all of it, doubts and scores from what was held out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.choice.model import ChoiceModel, ChoiceOrigin
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.records import Target

from .candidates import CandidateTimes
from .cells import ChoiceFeatures, TimeCells, time_cells
from .growing import grown
from .held_out import HeldOutExpectations, Trust, doubts_from, held_out_times
from .library import LibraryRun, LibraryTimes
from .siblings import Sibling, SiblingCells, with_siblings

Floats = NDArray[np.float64]
LEAST_TIMES = 200
"""The fewest times of a fit."""
LEAST_PLANS = 50
"""The fewest products with a plan from which the library's times are learned by it."""
TOP = 3


@dataclass(frozen=True)
class ChoiceLesson:
    """What a model is fitted to: the times of a matrix's candidates, those of siblings, and those of the library
    alone."""

    candidates: CandidateTimes
    cells: TimeCells
    siblings: tuple[SiblingCells, ...] = ()
    library: LibraryTimes | None = None

    @staticmethod
    def of(
        whole: TimeMatrix,
        target: Target,
        siblings: Sequence[Sibling] = (),
        library: Sequence[LibraryRun] = (),
        seed: int = 0,
    ) -> ChoiceLesson:
        """Raises ValueError for fewer than LEAST_TIMES times, and FewSharedError."""
        candidates = CandidateTimes.of(whole, target)
        matrix = candidates.matrix
        features = ChoiceFeatures(matrix.solutions, target)
        cells = time_cells(matrix, target, features)
        if len(cells.logs) < LEAST_TIMES:
            raise ValueError(f"{len(cells.logs)} times, {LEAST_TIMES} are needed")
        others = tuple(SiblingCells.of(sibling, matrix, features) for sibling in siblings)
        if np.count_nonzero(cells.planned) < LEAST_PLANS:
            cells = cells.without_plans
            others = tuple(replace(other, cells=other.cells.without_plans) for other in others)
            return ChoiceLesson(candidates, cells, others)
        alone = LibraryTimes.of(library, matrix, features, target)
        return ChoiceLesson(candidates, cells, others, alone and alone.beside(cells, seed))

    def held_out(self, seed: int) -> HeldOutExpectations:
        """What models expect of what they were not fitted on. Raises ValueError for a single family, and
        FewSharedError."""
        return held_out_times(self.candidates.matrix.families, self.cells, seed, self.siblings, self.library)


@dataclass(frozen=True)
class ChoiceFit:
    """A model, and for each product the efficiency (best time / time of the choice) if its family is held out."""

    model: ChoiceModel
    efficiencies: Floats
    families: tuple[str, ...]


def fit_choice(
    whole: TimeMatrix,
    target: Target,
    data_type: str,
    sources: tuple[str, ...],
    made: tuple[str, str],
    noise: float = 0.0,
    seed: int = 0,
    siblings: Sequence[Sibling] = (),
    library: Sequence[LibraryRun] = (),
) -> ChoiceFit:
    """The model of a device's matrix. `made` is the version of tunesmith, and the date. `noise` is the relative
    half-width of a time's interval. The times of `siblings` and of the `library` alone teach it, too, but their
    products have no scores.

    Raises ValueError for fewer than LEAST_TIMES times and for a single family, and FewSharedError.
    """
    lesson = ChoiceLesson.of(whole, target, siblings, library, seed)
    matrix, best = lesson.candidates.matrix, lesson.candidates.best
    held_out = lesson.held_out(seed)
    trust = Trust.of(held_out.products, noise, seed)
    first, top = (best_of_first(matrix, best, trust.cautious(held_out.families), count) for count in (1, TOP))
    taught = with_siblings(lesson.cells, lesson.siblings, seed)
    model = grown(taught, seed, lesson.library)
    doubts = doubts_from(lesson.cells.pairs, held_out.products.errors, seed)
    return ChoiceFit(
        ChoiceModel(
            _origin(lesson, taught, sources, made, tuple(sibling.name for sibling in siblings)),
            target,
            data_type,
            lesson.cells.types,
            tuple((solution.kernel, solution.configuration) for solution in matrix.solutions),
            lesson.cells.columns,
            model.times,
            replace(doubts, base=doubts.base + math.log(trust.factor)),
            trust.caution,
            _scores(first, top),
            model.library,
        ),
        first,
        matrix.families,
    )


def _origin(
    lesson: ChoiceLesson,
    taught: TimeCells,
    sources: tuple[str, ...],
    made: tuple[str, str],
    siblings: tuple[str, ...],
) -> ChoiceOrigin:
    matrix, times = lesson.candidates.matrix, len(lesson.cells.logs)
    translated, families = len(np.unique(taught.pairs.row[times:])), len(set(matrix.families))
    alone = len(lesson.library) if lesson.library else 0
    return ChoiceOrigin(sources, len(matrix.problems), times, families, *made, siblings, translated, alone)


def best_of_first(matrix: TimeMatrix, best: Floats, expected: Floats, count: int) -> Floats:
    """The `best` time over the best of the first `count` solutions by expected time, for each product."""
    first = np.argsort(np.where(np.isfinite(expected), expected, np.inf), axis=1)[:, :count]
    efficiencies: Floats = best / np.nanmin(np.take_along_axis(matrix.seconds, first, axis=1), axis=1)
    return efficiencies


def _scores(first: Floats, top: Floats) -> Mapping[str, float]:
    return {
        "geomean": math.exp(float(np.log(first).mean())),
        "percentile-10": float(np.quantile(first, 0.1)),
        "worst": float(first.min()),
        f"top-{TOP}": math.exp(float(np.log(top).mean())),
    }
