"""What the library would choose among measured solutions: by the nearest sizes, by a choice model, and the vendor's
library alone. Nothing of that is learned from the products that are judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tunesmith import __version__
from tunesmith.kernels import VENDOR
from tunesmith.logic import FinalTable, Logic, Origin, TableCell
from tunesmith.logic.build import build
from tunesmith.models.choice.fit.fitting import ChoiceLesson, fit_choice
from tunesmith.models.choice.fit.held_out import Trust
from tunesmith.models.choice.model import ChoiceModel
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.problems import OPERATIONS
from tunesmith.records import Estimate, Outcome, Problem, ProblemType, Solution, Target

from .matrices import JudgedSubject

Guesses = tuple[Solution, ...]
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Chooser:
    """An entrant that takes its guesses from the measured solutions of a product, of any family."""

    name: str
    kernel: ClassVar[str] = ""
    ranks: ClassVar[bool] = True


VENDOR_ALONE, NEAREST, PREDICTED = Chooser("vendor alone"), Chooser("nearest"), Chooser("predicted")


@dataclass(frozen=True)
class ChosenRow:
    """What a product's solutions that ran are asked in turn: those of its type's `logic` by the nearest sizes, and all
    by `expected` time."""

    problem: Problem
    ran: frozenset[Solution]
    logic: Logic | None
    expected: Iterable[Solution]

    def guesses(self, count: int) -> Mapping[Chooser, Guesses]:
        """The first guesses of each chooser. The nearest sizes choose from the solutions of the logic, which won
        somewhere; a model chooses from all that it knows."""
        nearest = [choice.solution for choice in self.logic.candidates(self.problem.sizes)] if self.logic else []
        rankings = {
            VENDOR_ALONE: [solution for solution in self.ran if solution.kernel == VENDOR],
            NEAREST: nearest,
            PREDICTED: [*self.expected, *nearest],
        }
        return {
            chooser: tuple(islice(dict.fromkeys(solution for solution in ranking if solution in self.ran), count))
            for chooser, ranking in rankings.items()
        }


def chosen_held_out(subject: JudgedSubject, count: int, seed: int = 0) -> Mapping[Chooser, list[Guesses]]:
    """The guesses for each product, learned from the products of other families. Raises ValueError for a single
    family and for too few times."""
    whole, lesson = subject.matrix, ChoiceLesson.of(subject.matrix, subject.target)
    held_out, matrix = lesson.held_out(seed), lesson.candidates.matrix
    # A product without a time of a candidate is not answered.
    chosen = {row: _chosen_row(whole, row, {}, ()) for row in range(len(whole.problems))}
    for fold in np.unique(held_out.families.folds):
        taught = held_out.families.folds != fold
        logics = logics_of(matrix, subject.target, taught)
        expected = Trust.of(held_out.products.only(taught), subject.noise.of_a_time, seed).cautious(held_out.families)
        for row in np.flatnonzero(~taught).tolist():
            order = np.argsort(np.where(np.isfinite(expected[row]), expected[row], np.inf)).tolist()
            expected_solutions = [matrix.solutions[column] for column in order]
            row_of_whole = int(lesson.candidates.rows[row])
            chosen[row_of_whole] = _chosen_row(whole, row_of_whole, logics, expected_solutions)
    return _guesses([*chosen.values()], count)


def chosen_by_taught(
    subject: JudgedSubject, taught: JudgedSubject, count: int, model: ChoiceModel | None = None, seed: int = 0
) -> Mapping[Chooser, list[Guesses]]:
    """The guesses for each product, learned from another matrix; by the choice `model`, if there is one, instead of one
    fitted to that matrix. Raises ValueError if the matrix has too few times for a fit."""
    if model is None:
        noise, made = taught.noise.of_a_time, (__version__, "")
        model = fit_choice(taught.matrix, taught.target, taught.data_type, (), made, noise, seed).model
    logics, matrix = logics_of(taught.matrix, taught.target), subject.matrix
    expected = expected_order(model, matrix)
    return _guesses([_chosen_row(matrix, row, logics, order) for row, order in enumerate(expected)], count)


def expected_order(model: ChoiceModel, matrix: TimeMatrix) -> list[list[Solution]]:
    """For each product, the solutions of its type in the order in which the model would try them."""
    kinds = dict.fromkeys(problem.type for problem in matrix.problems)
    solutions = {kind: [solution for solution in matrix.solutions if solution.type == kind] for kind in kinds}
    times = {kind: model.times_of(kind, solutions[kind]) for kind in kinds}
    return [
        [
            solutions[problem.type][time.solution]
            for time in times[problem.type].ranked(problem, matrix.plans.get(problem))
        ]
        for problem in matrix.problems
    ]


def logics_of(matrix: TimeMatrix, target: Target, rows: Rows | None = None) -> Mapping[ProblemType, Logic]:
    """The logic of each problem type of a matrix, or of some of its rows: the fastest solution of each product."""
    by_type: dict[ProblemType, list[int]] = {}
    for row in np.flatnonzero(np.ones(len(matrix.problems), bool) if rows is None else rows).tolist():
        by_type.setdefault(matrix.problems[row].type, []).append(row)
    origin = Origin.of(target, "", __version__, "")
    return {kind: build([_table(matrix, kind, of_type)], origin) for kind, of_type in by_type.items()}


def _table(matrix: TimeMatrix, kind: ProblemType, rows: Sequence[int]) -> FinalTable:
    problems = tuple(matrix.problems[row] for row in rows)
    cells = {
        (matrix.problems[row], matrix.solutions[column]): TableCell(
            Outcome.OK, estimate=Estimate(float(matrix.seconds[row, column]), math.nan, math.nan, 1)
        )
        for row in rows
        for column in np.flatnonzero(np.isfinite(matrix.seconds[row])).tolist()
    }
    solutions = tuple(dict.fromkeys(solution for _, solution in cells))
    work = OPERATIONS[kind.operation].work
    return FinalTable(kind, problems, tuple(map(work, problems)), solutions, cells)


def _chosen_row(
    matrix: TimeMatrix, row: int, logics: Mapping[ProblemType, Logic], expected: Iterable[Solution]
) -> ChosenRow:
    problem = matrix.problems[row]
    ran = (matrix.solutions[column] for column in np.flatnonzero(np.isfinite(matrix.seconds[row])).tolist())
    return ChosenRow(problem, frozenset(ran), logics.get(problem.type), expected)


def _guesses(rows: Sequence[ChosenRow], count: int) -> Mapping[Chooser, list[Guesses]]:
    of_rows = [row.guesses(count) for row in rows]
    return {chooser: [guesses[chooser] for guesses in of_rows] for chooser in (VENDOR_ALONE, NEAREST, PREDICTED)}
