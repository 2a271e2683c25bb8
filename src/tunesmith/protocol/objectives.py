"""Objectives: the cost of a candidate over several sizes as one number, a logarithm. Lower is better.

With t(p) the candidate's time on problem p, b(p) the best time of all competitors on p, and v(p) the weight of p, which
is 1 by default:

| objective  | log cost                          | what decides                                      |
|------------|-----------------------------------|---------------------------------------------------|
| geomean    | mean over p of ln(t/b), by v      | every size has its weight's say                   |
| max        | min over p of ln(t/w)             | w is the work: the best single cell, as Tensile's |
| total_time | ln(sum over p of v t)             | long sizes decide                                 |
| worst      | max over p of ln(t/b)             | the size with the largest regret decides          |

The objectives max and worst depend on a single cell, so they use no weights.

`exp(-cost)` is the score that people see: in the table's order a relative speed, FLOP/s, 1/seconds, a relative speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from tunesmith.records import Problem

from .steps import Objective, Weights

Times = Mapping[Problem, float]


@dataclass(frozen=True)
class CostFunction:
    """An objective with the best time, the work and the weight of each problem."""

    objective: Objective
    best: Times
    work: Mapping[Problem, float]
    weights: Weights

    def cost(self, times: Times) -> float:
        """The log cost of a candidate with these times; infinite for a candidate that ran nowhere."""
        if not times:
            return math.inf
        if self.objective is Objective.MAX:
            return min(math.log(seconds / self.work[problem]) for problem, seconds in times.items())
        weights = [self.weights.get(problem, 1.0) for problem in times] if self.weights else [1.0] * len(times)
        if self.objective is Objective.TOTAL_TIME:
            return math.log(math.fsum(map(mul, weights, times.values())))
        regrets = [math.log(seconds / self.best[problem]) for problem, seconds in times.items()]
        if self.objective is Objective.WORST:
            return max(regrets)
        return math.fsum(map(mul, weights, regrets)) / math.fsum(weights)


def cost_function_for(
    objective: Objective, competitors: Sequence[Times], work: Callable[[Problem], float], weights: Weights
) -> CostFunction:
    """The cost function that compares these competitors, given by their times."""
    best: dict[Problem, float] = {}
    for times in competitors:
        for problem, seconds in times.items():
            best[problem] = min(seconds, best.get(problem, math.inf))
    flops = {problem: work(problem) for problem in best} if objective is Objective.MAX else {}
    return CostFunction(objective, best, flops, weights)
