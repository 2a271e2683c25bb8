"""Who wins a step: the first times, then the finalists side by side, and in doubt the incumbent stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from tunesmith.records import Configuration, Estimate, Problem
from tunesmith.search import Told

from .intervals import DRIFT, RESOLUTION, faster
from .measure import Cell, TimeTable
from .objectives import Times, Yardstick, yardstick
from .steps import Objective, Weights

Confirm = Callable[[Sequence[Configuration], Sequence[Problem]], TimeTable]
Row = Mapping[Problem, Estimate]

MAX_FINALISTS = 4
"""Measured again at most, the incumbent not counted."""
CONFIDENCE = 0.95

HOPELESS = 3.0
"""An incumbent that took this many times the best's time has lost by its first time."""


@dataclass(frozen=True)
class Contest:
    """Candidates in the file's order with their first times; `incumbent` is the one that was held before, if any.

    `weights` say how much a problem counts, where it is not as much as any other.
    """

    candidates: Sequence[Configuration]
    problems: Sequence[Problem]
    told: Told
    objective: Objective
    work: Callable[[Problem], float]
    incumbent: Configuration | None = None
    weights: Weights = field(default_factory=dict)

    def rows(self) -> dict[Configuration, Row]:
        """Estimates by problem, for each candidate that ran anywhere."""
        told = {config: self.told.get(config, {}) for config in self.candidates}
        rows = {config: {p: row[p] for p in self.problems if p in row} for config, row in told.items()}
        return {config: row for config, row in rows.items() if row}


@dataclass(frozen=True)
class ContestDecision:
    """How a contest ended.

    `times` are the winner's seconds on each problem that it ran. `ties` are those that could not be told from the
    winner. `overlapping` counts the candidates whose first intervals reached the best's; the `finalists` among them
    were measured again, side by side, with `paired` samples; there are none where the first times were clear.
    `scores` (higher is better, `objectives` gives the unit) are 0 for a candidate that misses a size of a rival's.
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
    """The winner of a contest; None where no candidate ran.

    Only candidates that cover what the best-covered one covers can win. First times were taken at different moments,
    so that each is in doubt by `DRIFT` beside its interval; one that is clear of all others' wins at once. Otherwise
    the best few and the incumbent are measured again, interleaved, and `settle` decides. Nothing replaces an incumbent
    that was not beside it, unless the incumbent is `HOPELESS`.
    """
    rows = contest.rows()
    if not rows:
        return None
    against = yardstick(contest.objective, [_seconds(row) for row in rows.values()], contest.work, contest.weights)
    costs = {config: against.cost(_seconds(row)) for config, row in rows.items()}
    rivals = _best_covered(rows, costs)
    close = _overlapping(rivals, rows, costs, against)
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
        paired = _block_costs(finalists, covered, table, against)
        if paired:
            winner, ties = settle(paired, incumbent)
        else:
            winner = incumbent or winner
            ties = tuple(config for config in finalists if config != winner)
    return ContestDecision(
        winner,
        _seconds(rows[winner]),
        {config: math.exp(-costs[config]) if len(rows[config]) == len(against.best) else 0.0 for config in rows},
        incumbent,
        len(close),
        finalists,
        ties,
        table.paired,
    )


def relative_costs(contest: Contest) -> dict[Configuration, float]:
    """For a search to learn from: each candidate's time beside the best times, of those that can win."""
    decision = choose(contest, lambda configs, problems: TimeTable())
    return {config: 1 / score for config, score in decision.scores.items() if score} if decision else {}


def settle(
    costs: Mapping[Configuration, Sequence[float]], incumbent: Configuration | None
) -> tuple[Configuration, tuple[Configuration, ...]]:
    """Winner and ties from log costs by block, paired across the finalists that have them.

    The incumbent yields only to challengers that are faster beyond doubt. Of those that may win, the least mean wins;
    the ties are those that cannot be told from it. Intervals hold together for all comparisons with one finalist
    (Bonferroni), since the best of several equals would else look better than it is.
    """
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(costs) - 1)

    def beats(one: Configuration, other: Configuration) -> bool:
        return faster(costs[one], costs[other], confidence)

    may_win = list(costs)
    if incumbent is not None and incumbent in costs:
        may_win = [config for config in costs if beats(config, incumbent)] or [incumbent]
    winner = min(may_win, key=lambda config: fmean(costs[config]))
    return winner, tuple(config for config in costs if config != winner and not beats(winner, config))


def _seconds(row: Row) -> dict[Problem, float]:
    return {problem: estimate.seconds for problem, estimate in row.items()}


def _best_covered(rows: Mapping[Configuration, Row], costs: Mapping[Configuration, float]) -> list[Configuration]:
    """Those that ran on exactly the problems of the one that ran on most, the cheapest of these."""
    leader = min(rows, key=lambda config: (-len(rows[config]), costs[config]))
    return [config for config in rows if rows[config].keys() == rows[leader].keys()]


def _overlapping(
    rivals: Sequence[Configuration],
    rows: Mapping[Configuration, Row],
    costs: Mapping[Configuration, float],
    against: Yardstick,
) -> list[Configuration]:
    """Those whose interval, or one that is `DRIFT` lower, reaches the best's, best first; exact ties in the order of
    the file.

    A cost rises with every time in it, so the ends of the cells' intervals bound it.
    """
    best = min(costs[config] for config in rivals)
    order = sorted(rivals, key=lambda config: max(costs[config] - best, RESOLUTION))
    reach = against.cost({problem: estimate.high for problem, estimate in rows[order[0]].items()}) + math.log1p(DRIFT)
    return [
        config
        for config in order
        if against.cost({problem: estimate.low for problem, estimate in rows[config].items()}) <= reach + RESOLUTION
    ]


def _block_costs(
    finalists: Sequence[Configuration], problems: Sequence[Problem], table: TimeTable, against: Yardstick
) -> dict[Configuration, list[float]]:
    """Each finalist's log cost in each block; one that failed this time on any problem is left out."""
    whole = [config for config in finalists if all(table.paired.get((config, p)) for p in problems)]
    blocks = min((len(table.paired[config, p]) for config in whole for p in problems), default=0)
    return {
        config: [against.cost({p: table.paired[config, p][block] for p in problems}) for block in range(blocks)]
        for config in whole
    }
