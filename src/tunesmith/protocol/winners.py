"""Decides who wins a step: by the first times if they are clear, else by measuring finalists side by side. In doubt the
incumbent stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from tunesmith.records import Configuration, Estimate, Problem
from tunesmith.search import MeasuredTimes

from .intervals import DRIFT, RESOLUTION, faster
from .measure import Cell, TimeTable
from .objectives import CostFunction, Times, cost_function_for
from .steps import Objective, Weights

Confirm = Callable[[Sequence[Configuration], Sequence[Problem]], TimeTable]
Row = Mapping[Problem, Estimate]

MAX_FINALISTS = 4
"""The most candidates that are measured again, besides the incumbent."""
CONFIDENCE = 0.95

HOPELESS = 3.0
"""An incumbent with a cost of this many times the best cost has lost by its first times."""


@dataclass(frozen=True)
class Contest:
    """Candidates in the file's order, with the times that they already have. `incumbent` is the configuration before
    the step, if it is a candidate. `weights` has the weights of problems; the weight of an absent problem is 1.
    """

    candidates: Sequence[Configuration]
    problems: Sequence[Problem]
    first_times: MeasuredTimes
    objective: Objective
    work: Callable[[Problem], float]
    incumbent: Configuration | None = None
    weights: Weights = field(default_factory=dict)

    def rows(self) -> dict[Configuration, Row]:
        """Estimates by problem, for each candidate that ran anywhere."""
        times = {config: self.first_times.get(config, {}) for config in self.candidates}
        rows = {config: {p: row[p] for p in self.problems if p in row} for config, row in times.items()}
        return {config: row for config, row in rows.items() if row}


@dataclass(frozen=True)
class ContestDecision:
    """The result of a contest.

    `times` are the winner's seconds on each problem that it ran. `ties` are the candidates that could not be told from
    the winner. `overlapping` is the number of candidates whose first intervals reached the best candidate's interval.
    The `finalists` among them were measured again side by side, with `paired` samples; there are no finalists if the
    first times were clear. `scores` (higher is better, `objectives` has the unit) are 0 for a candidate that did not
    run at every size at which a rival ran.
    """

    winner: Configuration
    times: Times
    scores: Mapping[Configuration, float]
    incumbent: Configuration | None = None
    overlapping: int = 1
    finalists: tuple[Configuration, ...] = ()
    ties: tuple[Configuration, ...] = ()
    paired: Mapping[Cell, tuple[float, ...]] = field(default_factory=dict)

    @property
    def incumbent_kept(self) -> bool:
        return self.winner == self.incumbent


def choose(contest: Contest, confirm: Confirm) -> ContestDecision | None:
    """The winner of a contest; None if no candidate ran.

    Only candidates that ran on the same problems as the best-covered candidate can win. First times were measured at
    different moments, so each is uncertain by `DRIFT` beside its interval. A candidate whose cost is clear of all
    others wins at once. Otherwise the best few and the incumbent are measured again, interleaved, and `settle` decides.
    A candidate replaces the incumbent only if both were measured side by side, or if the incumbent is `HOPELESS`.
    """
    rows = contest.rows()
    if not rows:
        return None
    cost_function = cost_function_for(
        contest.objective, [_seconds(row) for row in rows.values()], contest.work, contest.weights
    )
    costs = {config: cost_function.cost(_seconds(row)) for config, row in rows.items()}
    rivals = _best_covered(rows, costs)
    close = _overlapping(rivals, rows, costs, cost_function)
    incumbent = contest.incumbent if contest.incumbent in rivals else None
    winner, table = close[0], TimeTable()
    finalists: tuple[Configuration, ...] = ()
    ties: tuple[Configuration, ...] = ()
    chosen = set(close[:MAX_FINALISTS])
    if incumbent is not None and costs[incumbent] <= costs[winner] + math.log(HOPELESS):
        chosen.add(incumbent)
    if len(chosen) > 1:
        finalists = tuple(config for config in contest.candidates if config in chosen)
        covered = tuple(rows[winner])
        table = confirm(finalists, covered)
        paired = _block_costs(finalists, covered, table, cost_function)
        if paired:
            winner, ties = settle(paired, incumbent)
        else:
            winner = incumbent or winner
            ties = tuple(config for config in finalists if config != winner)
    return ContestDecision(
        winner,
        _seconds(rows[winner]),
        {config: math.exp(-costs[config]) if len(rows[config]) == len(cost_function.best) else 0.0 for config in rows},
        incumbent,
        len(close),
        finalists,
        ties,
        table.paired,
    )


def relative_costs(contest: Contest) -> dict[Configuration, float]:
    """Each candidate's cost relative to the best times, for a search to learn from. Candidates that cannot win have
    none."""
    decision = choose(contest, lambda configs, problems: TimeTable())
    return {config: 1 / score for config, score in decision.scores.items() if score} if decision else {}


def settle(
    costs: Mapping[Configuration, Sequence[float]], incumbent: Configuration | None
) -> tuple[Configuration, tuple[Configuration, ...]]:
    """The winner and the ties, from the finalists' log costs by block, which are paired across finalists.

    The incumbent is replaced only by challengers that are faster beyond doubt. Among the candidates that may win, the
    smallest mean wins. The ties are the candidates that cannot be told from the winner. Intervals hold together for all
    comparisons with one finalist (Bonferroni); otherwise the best of several equals would look better than it is.
    """
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(costs) - 1)

    def beats(config: Configuration, other: Configuration) -> bool:
        return faster(costs[config], costs[other], confidence)

    may_win = list(costs)
    if incumbent is not None and incumbent in costs:
        may_win = [config for config in costs if beats(config, incumbent)] or [incumbent]
    winner = min(may_win, key=lambda config: fmean(costs[config]))
    return winner, tuple(config for config in costs if config != winner and not beats(winner, config))


def _seconds(row: Row) -> dict[Problem, float]:
    return {problem: estimate.seconds for problem, estimate in row.items()}


def _best_covered(rows: Mapping[Configuration, Row], costs: Mapping[Configuration, float]) -> list[Configuration]:
    """The candidates that ran on exactly the same problems as the leader. The leader is the candidate that ran on the
    most problems, and among several of those the one with the lowest cost."""
    leader = min(rows, key=lambda config: (-len(rows[config]), costs[config]))
    return [config for config in rows if rows[config].keys() == rows[leader].keys()]


def _overlapping(
    rivals: Sequence[Configuration],
    rows: Mapping[Configuration, Row],
    costs: Mapping[Configuration, float],
    cost_function: CostFunction,
) -> list[Configuration]:
    """The candidates whose interval, lowered by `DRIFT`, reaches the interval of the best, best first. Exact ties are
    in the file's order.

    A cost increases with every time in it, so the ends of the cells' intervals give the ends of the cost's interval.
    """
    best = min(costs[config] for config in rivals)
    order = sorted(rivals, key=lambda config: max(costs[config] - best, RESOLUTION))
    reach = cost_function.cost({problem: estimate.high for problem, estimate in rows[order[0]].items()}) + math.log1p(
        DRIFT
    )
    return [
        config
        for config in order
        if cost_function.cost({problem: estimate.low for problem, estimate in rows[config].items()})
        <= reach + RESOLUTION
    ]


def _block_costs(
    finalists: Sequence[Configuration], problems: Sequence[Problem], table: TimeTable, cost_function: CostFunction
) -> dict[Configuration, list[float]]:
    """Each finalist's log cost in each block, without finalists that failed on any problem this time."""
    complete = [config for config in finalists if all(table.paired.get((config, p)) for p in problems)]
    blocks = min((len(table.paired[config, p]) for config in complete for p in problems), default=0)
    times = {config: zip(*(table.paired[config, p][:blocks] for p in problems), strict=True) for config in complete}
    return {
        config: [cost_function.cost(dict(zip(problems, block, strict=True))) for block in rows]
        for config, rows in times.items()
    }
