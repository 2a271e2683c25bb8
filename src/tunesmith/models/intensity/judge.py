"""How well does a policy choose? Its choices against a matrix of measured times that nothing was fitted on.

Selection efficiency is the best known time at a problem over the time of what was chosen. A configuration that nobody
measured is scored by the measured one that is nearest to it, and the share of such stands beside the score. A choice
that failed has no score. Problems of one family (the layers of one model, say) are alike, so that intervals draw whole
families.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Problem, Solution

from .distance import distance, same_tile

RESAMPLES = 1000
CONFIDENCE = 0.95
GOOD = 0.95
"""Efficiency from which a choice counts as good as the best."""
TIE = 1e-9
"""Distances that differ by less are equal."""
RANKS = (1, 3, 5)
"""So many first guesses of a policy are tried, where it ranks several."""


@dataclass(frozen=True)
class TimeMatrix:
    """Measured seconds: a row a problem, a column a solution, NaN where nothing ran. `families` has a name for each
    problem; those of one family are alike.

    `halves` are the times by each half of the samples, where the samples are known; `seconds` is then the geometric
    mean of both. The least of many noisy times is too good; so the one half says which solution is the fastest, and the
    other half how fast it is.

    `failed` marks what was tried and did not run right; without it, nothing is known to have failed.
    """

    problems: tuple[Problem, ...]
    families: tuple[str, ...]
    solutions: tuple[Solution, ...]
    seconds: NDArray[np.float64]
    halves: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    failed: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for parts whose lengths differ."""
        shape = (len(self.problems), len(self.solutions))
        if self.seconds.shape != shape or len(self.families) != len(self.problems):
            raise ValueError(f"{self.seconds.shape} times and {len(self.families)} families for {shape}")
        if self.failed is not None and self.failed.shape != shape:
            raise ValueError(f"{self.failed.shape} failures for {shape}")

    @cached_property
    def best(self) -> NDArray[np.float64]:
        """Seconds of the fastest of each row; NaN where nothing ran."""
        return self.best_among(slice(None), range(len(self.solutions)))

    @cached_property
    def columns(self) -> Mapping[Solution, int]:
        """The column of each solution."""
        return {solution: column for column, solution in enumerate(self.solutions)}

    def best_of(self, kernel: str) -> NDArray[np.float64]:
        """What `best` is, of one kernel's solutions."""
        among = [column for column, solution in enumerate(self.solutions) if solution.kernel == kernel]
        return self.best_among(slice(None), among)

    def best_among(self, rows: slice, among: Sequence[int]) -> NDArray[np.float64]:
        """Seconds of the fastest of some solutions in each of these rows; NaN where none of them ran."""
        if self.halves is None or not len(among):
            return _fastest(self.seconds[rows, among])
        first, second = (half[rows, among] for half in self.halves)
        best: NDArray[np.float64] = np.sqrt(_at_fastest(first, second) * _at_fastest(second, first))
        return best


def _fastest(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    least = np.where(np.isfinite(seconds), seconds, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(least), least, np.nan)


def _at_fastest(chosen_by: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The time in `seconds` of what is the fastest in `chosen_by`; NaN where nothing ran."""
    columns = np.where(np.isfinite(chosen_by), chosen_by, np.inf).argmin(axis=1)
    times: NDArray[np.float64] = seconds[np.arange(len(seconds)), columns]
    return times


@dataclass(frozen=True, slots=True)
class ScoredColumn:
    """The column that a choice is scored by; `is_measured` where it is what was chosen and not only near it,
    `has_tile` where at least its macro tile and parts of K are those that were chosen."""

    column: int
    is_measured: bool
    has_tile: bool


@dataclass(frozen=True)
class SelectionScore:
    """Of the problems that had a choice and a time for it: efficiencies in their order, and what they come to.

    `rows` are those of the matrix. `interval` is that of the geometric mean. `unmeasured` is the share that was scored
    by a neighbour, `other_tile` the share whose neighbour has another macro tile or other parts of K, `unanswered` the
    number of problems without a choice that ran. `within_kernel` is the geometric mean against the best of the chosen
    kernel instead of the best of all; `against_least` that against the least of all times. Noise makes it too
    small, and the geometric mean, whose best is known by halves, too large: the truth lies between.
    """

    efficiencies: NDArray[np.float64]
    rows: tuple[int, ...]
    picks: tuple[ScoredColumn, ...]
    families: tuple[str, ...]
    geomean: float
    interval: tuple[float, float]
    percentile_10: float
    worst: float
    good: float
    unmeasured: float
    other_tile: float
    unanswered: int
    within_kernel: float
    against_least: float


def picked(chosen: Solution, matrix: TimeMatrix, row: int, by_neighbour: bool = True) -> ScoredColumn | None:
    """The column of a choice at a problem, else the nearest of the same kernel that ran there, of several as near the
    one with the middle time; None without one, where the choice is known to have failed there, and where nothing but
    the choice itself counts (`by_neighbour`)."""
    own = matrix.columns.get(chosen)
    if own is not None and math.isfinite(matrix.seconds[row, own]):
        return ScoredColumn(own, True, True)
    has_failed = own is not None and matrix.failed is not None and bool(matrix.failed[row, own])
    if has_failed or not by_neighbour:
        return None
    alike = [column for column in _ran(matrix, row) if matrix.solutions[column].kernel == chosen.kernel]
    if not alike:
        return None
    far = {column: distance(chosen, matrix.solutions[column]) for column in alike}
    least = min(far.values()) + TIE
    ties = sorted((column for column in alike if far[column] <= least), key=lambda column: matrix.seconds[row, column])
    nearest = ties[(len(ties) - 1) // 2]
    return ScoredColumn(nearest, False, same_tile(chosen, matrix.solutions[nearest]))


def _ran(matrix: TimeMatrix, row: int) -> list[int]:
    return [int(column) for column in np.flatnonzero(np.isfinite(matrix.seconds[row]))]


def scored(
    matrix: TimeMatrix, choices: Sequence[Solution | None], seed: int = 0, by_neighbour: bool = True
) -> SelectionScore:
    """The score of one choice for each problem, None where the policy had none.

    Raises ValueError where no choice ran anywhere.
    """
    found = {
        row: pick
        for row, chosen in enumerate(choices)
        if chosen and (pick := picked(chosen, matrix, row, by_neighbour))
    }
    if not found:
        raise ValueError("no choice ran on any problem of the matrix")
    return _score(matrix, found, len(choices) - len(found), seed)


def narrowed(matrix: TimeMatrix, score: SelectionScore, rows: Collection[int], seed: int = 0) -> SelectionScore | None:
    """The score on some rows alone; None where no choice ran on any of them."""
    found = {row: pick for row, pick in zip(score.rows, score.picks, strict=True) if row in rows}
    return _score(matrix, found, len(rows) - len(found), seed) if found else None


def _score(matrix: TimeMatrix, found: Mapping[int, ScoredColumn], unanswered: int, seed: int) -> SelectionScore:
    rows, picks = list(found), list(found.values())
    seconds = matrix.seconds[rows, [pick.column for pick in picks]]
    efficiencies = matrix.best[rows] / seconds
    families = tuple(matrix.families[row] for row in rows)
    kernels = [matrix.solutions[pick.column].kernel for pick in picks]
    own = {kernel: matrix.best_of(kernel) for kernel in dict.fromkeys(kernels)}
    within = np.array([own[kernel][row] for kernel, row in zip(kernels, rows, strict=True)]) / seconds
    return SelectionScore(
        efficiencies,
        tuple(rows),
        tuple(picks),
        families,
        geomean(efficiencies),
        clustered_interval(efficiencies, families, seed),
        float(np.quantile(efficiencies, 0.1)),
        float(efficiencies.min()),
        float((efficiencies >= GOOD).mean()),
        sum(not pick.is_measured for pick in picks) / len(picks),
        sum(not pick.has_tile for pick in picks) / len(picks),
        unanswered,
        geomean(within),
        geomean(_fastest(matrix.seconds[rows]) / seconds),
    )


def scored_by(matrix: TimeMatrix, score: SelectionScore, names: Sequence[str]) -> Mapping[str, SelectionScore]:
    """The score within each group of problems that has a choice which ran; `names` has the group of each problem."""
    found = {}
    for name in dict.fromkeys(names):
        within = narrowed(matrix, score, [row for row, group in enumerate(names) if group == name])
        if within:
            found[name] = within
    return found


def best_of_first(
    matrix: TimeMatrix, ranked: Sequence[Sequence[Solution]], count: int, by_neighbour: bool = True
) -> float:
    """Geometric mean of the efficiency of the fastest among each problem's first `count` guesses."""
    efficiencies = []
    for row, guesses in enumerate(ranked):
        picks = [pick for chosen in guesses[:count] if (pick := picked(chosen, matrix, row, by_neighbour))]
        if picks:
            columns = list(dict.fromkeys(pick.column for pick in picks))
            efficiencies.append(matrix.best[row] / matrix.best_among(slice(row, row + 1), columns)[0])
    return geomean(np.array(efficiencies))


def geomean(values: NDArray[np.float64]) -> float:
    """Of positive numbers; NaN without any."""
    return float(np.exp(np.log(values).mean())) if len(values) else math.nan


def clustered_interval(values: NDArray[np.float64], families: Sequence[str], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the geometric mean by a bootstrap that draws families whole.

    One family says nothing of others: its interval is everything.
    """
    names = list(dict.fromkeys(families))
    if len(names) < 2:
        return 0.0, 1.0
    logs = np.log(values)
    members = [np.flatnonzero([family == name for family in families]) for name in names]
    sums = np.array([logs[rows].sum() for rows in members])
    counts = np.array([len(rows) for rows in members])
    drawn = np.random.default_rng(seed).integers(0, len(names), (RESAMPLES, len(names)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.exp(np.quantile(means, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)))
    return float(low), float(high)
