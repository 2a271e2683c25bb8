"""How often does the protocol decide wrongly on a machine whose speed drifts?

    python benchmarks/decisions_under_drift.py [--runs 500] [--seed 0]

The bench's own timing, racing and interleaving run on a simulated machine. The logarithm of its slowness is an
Ornstein-Uhlenbeck process (standard deviation and correlation time by scenario), and every execution has its own white
noise. Between two candidates, verification takes half a second. For each scenario:

- replaced: how often the challenger replaces an equal incumbent (5 % at most);
- of six: how often one of five equal challengers replaces the incumbent;
- raced out: in how many runs any of six equal candidates is stopped early (5 % at most);
- found: how often a challenger that is 3 % faster replaces the incumbent (80 % at least);
- samples: executions in a run of two candidates, the cost of the decision.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np

from tunesmith.bench import Policy
from tunesmith.bench.timing import interleave, lost_above, time_plan
from tunesmith.protocol import Cell, Contest, Objective, TimeTable, choose
from tunesmith.records import Configuration, Estimate, Problem, ProblemType

SIZE = Problem(ProblemType("simulated", "simulated", ("M",), Configuration()), (1,))
VERIFICATION = 0.5
"""Seconds of verification between two candidates."""
POLICY = Policy()


@dataclass(frozen=True)
class Scenario:
    """`drift` and `noise` are standard deviations of the logarithm of a time; `seconds` is the correlation time."""

    name: str
    drift: float
    seconds: float
    noise: float = 0.02


SCENARIOS = (
    Scenario("white noise", 0.0, 1.0),
    Scenario("2 %, 10 s", 0.02, 10.0),
    Scenario("5 %, 30 s", 0.05, 30.0),
)


def standard_normals(seed: int) -> Iterator[float]:
    """Drawn a thousand at a time, which takes a tenth of the time of single draws."""
    draw = np.random.default_rng(seed).standard_normal
    return chain.from_iterable(iter(lambda: draw(1000).tolist(), None))


@dataclass
class Machine:
    """A simulated machine: its clock, and its slowness at this moment."""

    scenario: Scenario
    normals: Iterator[float]
    now: float = 0.0
    executions: int = 0
    _slow: float = field(init=False)

    def __post_init__(self) -> None:
        self._slow = self.scenario.drift * next(self.normals)

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if drift := self.scenario.drift:
            kept = math.exp(-seconds / self.scenario.seconds)
            self._slow = kept * self._slow + drift * math.sqrt(1 - kept * kept) * next(self.normals)

    def execute(self, seconds: float) -> float:
        taken = seconds * math.exp(self._slow + self.scenario.noise * next(self.normals))
        self.wait(taken)
        self.executions += 1
        return taken


@dataclass
class SimulatedMeasure:
    """`protocol.Measure` on a simulated machine. `true` has each candidate's seconds; `raced` counts early stops."""

    machine: Machine
    true: dict[Configuration, float]
    policy: Policy = POLICY
    raced: int = 0

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> TimeTable:
        cells: dict[Cell, Estimate] = {}
        for group in groups:
            best = math.inf
            for config, problem in group:
                self.machine.wait(VERIFICATION)
                limit = lost_above(best) if racing else math.inf
                timed = time_plan(self._sampler(config), self.policy, limit, self.machine.clock)
                self.raced += timed.raced
                best = min(best, timed.estimate.high)
                cells[config, problem] = timed.estimate
        return TimeTable(cells)

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        paired = {}
        for problem in problems:
            takes = [self._sampler(config) for config in configs]
            samples = interleave(takes, self.policy, until_clear=len(problems) == 1)
            paired |= {(config, problem): taken for config, taken in zip(configs, samples, strict=True)}
        return TimeTable(paired=paired)

    def _sampler(self, config: Configuration) -> Callable[[], float]:
        return partial(self.machine.execute, self.true[config])


def decided(scenario: Scenario, times: Sequence[float], seed: int) -> tuple[int, SimulatedMeasure]:
    """The index of the winning candidate (0 is the incumbent), and the measure that timed the candidates."""
    configs = [Configuration({"a": number}) for number in range(len(times))]
    measure = SimulatedMeasure(Machine(scenario, standard_normals(seed)), dict(zip(configs, times, strict=True)))
    estimates = measure.screen_cells([[(config, SIZE) for config in configs]], racing=True).rows()
    contest = Contest(configs, (SIZE,), estimates, Objective.GEOMEAN, lambda problem: 1.0, configs[0])
    decision = choose(contest, measure.confirm)
    assert decision is not None, "everything runs on a simulated machine"
    return configs.index(decision.winner), measure


def rates(scenario: Scenario, runs: int, seed: int, seconds: float = 1e-3) -> dict[str, float]:
    """The figures of the module's list: shares of runs, and executions of a run. An execution takes `seconds`."""
    equal = [decided(scenario, (seconds, seconds), seed + run) for run in range(runs)]
    faster = [decided(scenario, (seconds, 0.97 * seconds), seed + run) for run in range(runs)]
    six = [decided(scenario, (seconds,) * 6, seed + run) for run in range(runs)]
    return {
        "replaced": sum(winner != 0 for winner, _ in equal) / runs,
        "of six": sum(winner != 0 for winner, _ in six) / runs,
        "raced out": sum(measure.raced > 0 for _, measure in six) / runs,
        "found": sum(winner == 1 for winner, _ in faster) / runs,
        "samples": sum(measure.machine.executions for _, measure in equal) / runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{'':14}{'replaced':>10}{'of six':>10}{'raced out':>10}{'found':>10}{'samples':>10}")
    for scenario in SCENARIOS:
        rates_found = rates(scenario, arguments.runs, arguments.seed)
        shares = [f"{rates_found[name]:10.1%}" for name in ("replaced", "of six", "raced out", "found")]
        print(f"{scenario.name:14}{''.join(shares)}{rates_found['samples']:10.0f}")


if __name__ == "__main__":
    main()
