"""The solutions of a product to measure: every guess, and the best known solutions that can be measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np

from tunesmith.kernels import KERNELS
from tunesmith.records import Problem, Solution
from tunesmith.session.frame.measure import RecordedMeasure

from .matrices import JudgedSubject

BEST_KNOWN = 5
"""The number of a matrix's fastest configurations that are measured with the choices. Times of another day cannot be
compared with today's, and the best of many noisy times is too good."""


@dataclass(frozen=True, slots=True)
class Finalists:
    """The solutions to measure; `unmeasurable` is the number of the matrix's fastest that cannot be measured."""

    solutions: tuple[Solution, ...]
    unmeasurable: int


def finalists(
    subject: JudgedSubject, row: int, guessed: Iterable[Solution], can_run: Callable[[Solution], bool]
) -> Finalists:
    """The solutions to measure for a product: every guess, the best known, and the best known of each guessed
    kernel."""
    matrix, guesses = subject.matrix, tuple(guessed)
    seconds = np.where(np.isfinite(matrix.seconds[row]), matrix.seconds[row], np.inf)
    order = [matrix.solutions[column] for column in np.argsort(seconds, kind="stable") if np.isfinite(seconds[column])]
    is_able = cache(can_run)
    best = islice(filter(is_able, order), BEST_KNOWN)
    kernels = dict.fromkeys(guess.kernel for guess in guesses)
    of_kernels = [[solution for solution in order if solution.kernel == kernel] for kernel in kernels]
    best_of_kernels = [next(filter(is_able, solutions), None) for solutions in of_kernels]
    solutions = dict.fromkeys([*best, *filter(None, best_of_kernels), *guesses])
    return Finalists(tuple(solutions), sum(not is_able(solution) for solution in order[:BEST_KNOWN]))


def is_measurable(solution: Solution, problem: Problem, measure: RecordedMeasure) -> bool:
    """Whether this version and this device can run a solution of a matrix.

    A matrix of an older version may have other kernels and parameters; a table without details has only the names of
    solutions.
    """
    if solution.kernel not in KERNELS:
        return False
    config, oracle = solution.configuration, measure.oracle
    try:
        family = oracle.family(config)
        parameters = {parameter.name for parameter in family.space(problem.type, oracle.target)}
        if family.name != solution.kernel or not parameters.issuperset(config):
            return False
        if oracle.rejections(config) or oracle.rejections_for(config, problem):
            return False
        measure.key((config, problem))
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return False
    return True
