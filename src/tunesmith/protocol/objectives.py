"""How several sizes become one number: the cost of a candidate, as a logarithm, lower being better.

With t(p) the candidate's time on problem p, b(p) the best time on p of all that compete and v(p) the weight of p, which
is 1 where nothing else was said:

| objective  | log cost                          | what decides                                      |
|------------|-----------------------------------|---------------------------------------------------|
| geomean    | mean over p of ln(t/b), by v      | every size has its weight's say                   |
| max        | min over p of ln(t/w)             | w is the work: the best single cell, as Tensile's |
| total_time | ln(sum over p of v t)             | long sizes decide                                 |
| worst      | max over p of ln(t/b)             | the size with the largest regret decides          |

The objectives of a single cell, max and worst, ask no weight.

`exp(-cost)` is the score that people see: a relative speed, FLOP/s, 1/seconds, a relative speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.records import Problem

from .steps import Objective, Weights

Times = Mapping[Problem, float]


@dataclass(frozen=True)
class Yardstick:
    """An objective with what it measures against: the best time of each problem, its work, and its weight."""

    objective: Objective
    best: Times
    work: Mapping[Problem, float]
    weights: Weights

    def cost(self, times: Times) -> float:
        """Log cost of a candidate with these times; infinite for one that ran nowhere."""
        if not times:
            return math.inf
        if self.objective is Objective.MAX:
            return min(math.log(seconds / self.work[problem]) for problem, seconds in times.items())
        weights = {problem: self.weights.get(problem, 1.0) for problem in times}
        if self.objective is Objective.TOTAL_TIME:
            return math.log(math.fsum(weights[problem] * seconds for problem, seconds in times.items()))
        regrets = {problem: math.log(seconds / self.best[problem]) for problem, seconds in times.items()}
        if self.objective is Objective.WORST:
            return max(regrets.values())
        return math.fsum(weights[problem] * regret for problem, regret in regrets.items()) / math.fsum(weights.values())


def yardstick(
    objective: Objective, competitors: Sequence[Times], work: Callable[[Problem], float], weights: Weights
) -> Yardstick:
    best: dict[Problem, float] = {}
    for times in competitors:
        for problem, seconds in times.items():
            best[problem] = min(seconds, best.get(problem, math.inf))
    flops = {problem: work(problem) for problem in best} if objective is Objective.MAX else {}
    return Yardstick(objective, best, flops, weights)
