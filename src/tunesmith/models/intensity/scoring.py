"""Scores the choices of a policy by a matrix of measured times to which nothing was fitted.

Selection efficiency is the best known time for a problem divided by the time of the chosen solution. A choice that was
not measured is scored by its nearest measured neighbour; the share of such choices is reported with the score. A choice
that failed has no score. Problems of one family (for example the layers of one model) are alike, so the intervals
resample whole families.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import LibraryPlan, Problem, Solution

from .distance import distance, same_tile

RESAMPLES = 1000
CONFIDENCE = 0.95
GOOD_EFFICIENCY = 0.95
"""From this efficiency on, a choice counts as good as the best."""
TIE = 1e-9
"""Distances that differ by less are equal."""
GUESS_COUNTS = (1, 3, 5)
"""How many first guesses of a policy are tried, if the policy ranks several."""


@dataclass(frozen=True)
class TimeMatrix:
    """Measured seconds: a row for each problem, a column for each solution, NaN where the solution did not run.

    `families` names a family for each problem; problems of one family are alike.

    `halves` are the times from each half of the samples, if the samples are known; `seconds` is then the geometric mean
    of both halves. The minimum of many noisy times is too small. Therefore one half tells which solution is the
    fastest, and the other half how fast this solution is.

    `failed` marks solutions that were tried and did not run correctly; None if no failures are known.

    `plans` are those of the vendor's library, where they are known.
    """

    problems: tuple[Problem, ...]
    families: tuple[str, ...]
    solutions: tuple[Solution, ...]
    seconds: NDArray[np.float64]
    halves: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    failed: NDArray[np.bool_] | None = None
    plans: Mapping[Problem, LibraryPlan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError for parts whose lengths differ."""
        shape = (len(self.problems), len(self.solutions))
        if self.seconds.shape != shape or len(self.families) != len(self.problems):
            raise ValueError(f"{self.seconds.shape} times and {len(self.families)} families for {shape}")
        if self.failed is not None and self.failed.shape != shape:
            raise ValueError(f"{self.failed.shape} failures for {shape}")

    @cached_property
    def best(self) -> NDArray[np.float64]:
        """Seconds of the fastest solution in each row; NaN where none ran."""
        return self.best_among(slice(None), range(len(self.solutions)))

    @cached_property
    def columns(self) -> Mapping[Solution, int]:
        """The column of each solution."""
        return {solution: column for column, solution in enumerate(self.solutions)}

    def best_of(self, kernel: str) -> NDArray[np.float64]:
        """Seconds of the kernel's fastest solution in each row; NaN where none ran."""
        columns = [column for column, solution in enumerate(self.solutions) if solution.kernel == kernel]
        return self.best_among(slice(None), columns)

    def best_among(self, rows: slice, columns: Sequence[int]) -> NDArray[np.float64]:
        """Seconds of the fastest of the solutions in `columns`, in each of these rows; NaN where none of them ran."""
        if self.halves is None or not len(columns):
            return _fastest(self.seconds[rows, columns])
        first, second = (half[rows, columns] for half in self.halves)
        best: NDArray[np.float64] = np.sqrt(_at_fastest(first, second) * _at_fastest(second, first))
        return best


def _fastest(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    least = np.where(np.isfinite(seconds), seconds, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(least), least, np.nan)


def _at_fastest(chosen_by: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row, the time in `seconds` of the solution that is the fastest in `chosen_by`; NaN where none ran."""
    columns = np.where(np.isfinite(chosen_by), chosen_by, np.inf).argmin(axis=1)
    times: NDArray[np.float64] = seconds[np.arange(len(seconds)), columns]
    return times


@dataclass(frozen=True, slots=True)
class ScoredColumn:
    """The column by which a choice is scored.

    `is_measured` if the column is the choice itself, not a neighbour. `has_tile` if at least its macro tile and parts
    of K are those of the choice.
    """

    column: int
    is_measured: bool
    has_tile: bool


@dataclass(frozen=True)
class SelectionScore:
    """The efficiencies on the problems that have a choice and a time for it, in order, and their summary.

    `rows` are rows of the matrix. `interval` is that of the geometric mean. `unmeasured` is the share of choices that
    were scored by a neighbour, `other_tile` the share whose neighbour has another macro tile or other parts of K, and
    `unanswered` the number of problems without a choice that ran. `within_kernel` is the geometric mean against the
    best of the chosen kernel instead of the best of all. `against_least` is the geometric mean against the minimum of
    all times. Noise makes `against_least` too small, and `geomean`, whose best times come from halves, too large. The
    truth lies between them.
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


def scored_column(chosen: Solution, matrix: TimeMatrix, row: int, by_neighbour: bool = True) -> ScoredColumn | None:
    """The column of the choice, if the choice ran on the problem of this row. Otherwise, with `by_neighbour`, the
    nearest solution of the same kernel that ran; among equally near solutions the one with the median time.

    None if there is no such column, and if the choice is known to have failed on the problem.
    """
    own_column = matrix.columns.get(chosen)
    if own_column is not None and math.isfinite(matrix.seconds[row, own_column]):
        return ScoredColumn(own_column, True, True)
    has_failed = own_column is not None and matrix.failed is not None and bool(matrix.failed[row, own_column])
    if has_failed or not by_neighbour:
        return None
    distances = {
        column: distance(chosen, matrix.solutions[column])
        for column in _columns_that_ran(matrix, row)
        if matrix.solutions[column].kernel == chosen.kernel
    }
    if not distances:
        return None
    least = min(distances.values()) + TIE
    tied = (column for column, far in distances.items() if far <= least)
    by_time = sorted(tied, key=lambda column: matrix.seconds[row, column])
    nearest = by_time[(len(by_time) - 1) // 2]
    return ScoredColumn(nearest, False, same_tile(chosen, matrix.solutions[nearest]))


def _columns_that_ran(matrix: TimeMatrix, row: int) -> list[int]:
    return [int(column) for column in np.flatnonzero(np.isfinite(matrix.seconds[row]))]


def scored(
    matrix: TimeMatrix, choices: Sequence[Solution | None], seed: int = 0, by_neighbour: bool = True
) -> SelectionScore:
    """The score of a policy with one choice for each problem, None where the policy made none.

    `by_neighbour` as for `scored_column`. Raises ValueError if no choice ran on any problem.
    """
    picks = {
        row: pick
        for row, chosen in enumerate(choices)
        if chosen and (pick := scored_column(chosen, matrix, row, by_neighbour))
    }
    if not picks:
        raise ValueError("no choice ran on any problem of the matrix")
    return _score(matrix, picks, len(choices) - len(picks), seed)


def narrowed(matrix: TimeMatrix, score: SelectionScore, rows: Collection[int], seed: int = 0) -> SelectionScore | None:
    """The score on these rows only; None if no choice ran on any of them."""
    picks = {row: pick for row, pick in zip(score.rows, score.picks, strict=True) if row in rows}
    return _score(matrix, picks, len(rows) - len(picks), seed) if picks else None


def _score(matrix: TimeMatrix, pick_by_row: Mapping[int, ScoredColumn], unanswered: int, seed: int) -> SelectionScore:
    rows, picks = list(pick_by_row), list(pick_by_row.values())
    seconds = matrix.seconds[rows, [pick.column for pick in picks]]
    efficiencies = matrix.best[rows] / seconds
    families = tuple(matrix.families[row] for row in rows)
    kernels = [matrix.solutions[pick.column].kernel for pick in picks]
    best_of_kernel = {kernel: matrix.best_of(kernel) for kernel in dict.fromkeys(kernels)}
    within = np.array([best_of_kernel[kernel][row] for kernel, row in zip(kernels, rows, strict=True)]) / seconds
    return SelectionScore(
        efficiencies,
        tuple(rows),
        tuple(picks),
        families,
        geomean(efficiencies),
        clustered_interval(efficiencies, families, seed),
        float(np.quantile(efficiencies, 0.1)),
        float(efficiencies.min()),
        float((efficiencies >= GOOD_EFFICIENCY).mean()),
        sum(not pick.is_measured for pick in picks) / len(picks),
        sum(not pick.has_tile for pick in picks) / len(picks),
        unanswered,
        geomean(within),
        geomean(_fastest(matrix.seconds[rows]) / seconds),
    )


def scored_by(matrix: TimeMatrix, score: SelectionScore, names: Sequence[str]) -> Mapping[str, SelectionScore]:
    """The score of each group of problems, by its name. `names` has the group of each problem. A group in which no
    choice ran is left out."""
    by_group = {}
    for name in dict.fromkeys(names):
        group_score = narrowed(matrix, score, [row for row, group in enumerate(names) if group == name])
        if group_score:
            by_group[name] = group_score
    return by_group


def best_of_first(
    matrix: TimeMatrix, ranked: Sequence[Sequence[Solution]], count: int, by_neighbour: bool = True
) -> float:
    """The geometric mean of efficiencies, if the fastest of each problem's first `count` guesses is taken."""
    efficiencies = []
    for row, guesses in enumerate(ranked):
        picks = [pick for chosen in guesses[:count] if (pick := scored_column(chosen, matrix, row, by_neighbour))]
        if picks:
            columns = list(dict.fromkeys(pick.column for pick in picks))
            efficiencies.append(matrix.best[row] / matrix.best_among(slice(row, row + 1), columns)[0])
    return geomean(np.array(efficiencies))


def geomean(values: NDArray[np.float64]) -> float:
    """The geometric mean of positive numbers; NaN if there are none."""
    return float(np.exp(np.log(values).mean())) if len(values) else math.nan


def clustered_interval(values: NDArray[np.float64], families: Sequence[str], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the geometric mean, by a bootstrap over whole families.

    A single family tells nothing about others; then the interval is from 0 to 1.
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
