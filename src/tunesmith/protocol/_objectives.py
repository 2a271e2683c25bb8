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

from ._steps import Objective, Weights

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
        return _COSTS[self.objective](times, self) if times else math.inf

    def weight(self, problem: Problem) -> float:
        return self.weights.get(problem, 1.0)


def yardstick(
    objective: Objective, competitors: Sequence[Times], work: Callable[[Problem], float], weights: Weights
) -> Yardstick:
    best: dict[Problem, float] = {}
    for times in competitors:
        for problem, seconds in times.items():
            best[problem] = min(seconds, best.get(problem, math.inf))
    flops = {problem: work(problem) for problem in best} if objective is Objective.MAX else {}
    return Yardstick(objective, best, flops, weights)


def _regrets(times: Times, against: Yardstick) -> dict[Problem, float]:
    return {problem: math.log(seconds / against.best[problem]) for problem, seconds in times.items()}


def _geomean(times: Times, against: Yardstick) -> float:
    regrets = _regrets(times, against)
    weighted = math.fsum(against.weight(problem) * regret for problem, regret in regrets.items())
    return weighted / math.fsum(map(against.weight, regrets))


def _worst(times: Times, against: Yardstick) -> float:
    return max(_regrets(times, against).values())


def _total_time(times: Times, against: Yardstick) -> float:
    return math.log(math.fsum(against.weight(problem) * seconds for problem, seconds in times.items()))


def _max(times: Times, against: Yardstick) -> float:
    return min(math.log(seconds / against.work[problem]) for problem, seconds in times.items())


_COSTS: Mapping[Objective, Callable[[Times, Yardstick], float]] = {
    Objective.GEOMEAN: _geomean,
    Objective.MAX: _max,
    Objective.TOTAL_TIME: _total_time,
    Objective.WORST: _worst,
}
