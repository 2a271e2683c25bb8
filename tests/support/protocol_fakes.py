"""An oracle and measurers for the protocol that need no device: legality and times are functions that a test gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tunesmith.protocol import (
    Benchmark,
    Cell,
    Final,
    Fork,
    Join,
    Objective,
    Phase,
    Phases,
    ProtocolResult,
    SearchPlan,
    Step,
    TimeTable,
)
from tunesmith.records import Configuration, Estimate, Problem, ProblemType, Rejection, Value
from tunesmith.spaces import Combinations

TOY = ProblemType("TOY", "toy", ("N",), Configuration())
Values = dict[str, list[Value]]
Seconds = Callable[[Configuration, Problem], float | None]
"""The time of a configuration on a problem; None where it does not run."""


def size(number: int) -> Problem:
    return Problem(TOY, (number,))


def sizes(*numbers: int) -> tuple[Problem, ...]:
    return tuple(size(number) for number in numbers)


def choices(values: Values) -> Combinations:
    """All combinations, the first parameter varying fastest."""
    return Combinations(
        tuple(tuple(Configuration({name: value}) for value in listed) for name, listed in values.items())
    )


def fork(**values: list[Value]) -> Fork:
    return Fork(choices(values))


def benchmark(phase: Phase = Phase.BENCHMARK_FORK, on: Iterable[int] = (1,), **values: list[Value]) -> Benchmark:
    return Benchmark(phase, choices(values), sizes(*on))


def join(*names: str, on: Iterable[int] = (1,)) -> Join:
    return Join(names, sizes(*on))


def final(*numbers: int) -> Final:
    return Final(sizes(*numbers or (1,)))


def phases(
    start: Mapping[str, Value],
    *steps: Step,
    objective: Objective = Objective.GEOMEAN,
    search: SearchPlan | None = None,
) -> Phases:
    """A size group. The tuned values are those of its steps."""
    tuned: dict[str, dict[Value, None]] = {}
    for step in steps:
        if isinstance(step, Fork | Benchmark):
            for name in step.choices.names:
                tuned.setdefault(name, {}).update(dict.fromkeys(step.choices.values(name)))
    listed = tuple((name, tuple(values)) for name, values in tuned.items())
    return Phases(TOY, 0, Configuration(start), steps, listed, objective, search or SearchPlan())


@dataclass
class FakeOracle:
    """An oracle from functions. `illegal` gives the reason why a configuration is illegal, or ""."""

    illegal: Callable[[Configuration], str] = lambda config: ""
    illegal_for: Callable[[Configuration, Problem], str] = lambda config, problem: ""
    derive: Callable[[Configuration], Mapping[str, Value]] = lambda config: {}
    same: Callable[[Configuration], object] = lambda config: config.to_json()
    flops: Callable[[Problem], float] = lambda problem: 1.0

    def rejections(self, config: Configuration) -> Sequence[Rejection]:
        return [Rejection(reason, str(config)) for reason in [self.illegal(config)] if reason]

    def rejections_for(self, config: Configuration, problem: Problem) -> Sequence[Rejection]:
        return [Rejection(reason, str(config)) for reason in [self.illegal_for(config, problem)] if reason]

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        return self.derive(config)

    def identity(self, config: Configuration) -> str:
        return str(self.same(config))

    def work(self, problem: Problem) -> float:
        return self.flops(problem)

    def guess(self, config: Configuration, problem: Problem) -> float:
        return math.inf


def by_rows(cells: Sequence[Cell]) -> tuple[list[Configuration], list[Problem]]:
    """The configurations and the problems of a group of cells."""
    return list(dict.fromkeys(config for config, _ in cells)), list(dict.fromkeys(problem for _, problem in cells))


@dataclass
class Exact:
    """Times without noise. Keeps the calls."""

    seconds: Seconds
    screens: list[tuple[list[list[Configuration]], list[Problem], bool]] = field(default_factory=list)
    confirms: list[tuple[list[Configuration], list[Problem]]] = field(default_factory=list)

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> TimeTable:
        rows = [by_rows(group) for group in groups]
        problems = rows[0][1]
        assert all(
            list(group) == [(c, p) for c in configs for p in problems]
            for group, (configs, _) in zip(groups, rows, strict=True)
        )
        self.screens.append(([configs for configs, _ in rows], problems, racing))
        cells = {}
        for config, problem in (cell for group in groups for cell in group):
            if (seconds := self.seconds(config, problem)) is not None:
                cells[config, problem] = Estimate(seconds, seconds, seconds, 1)
        return TimeTable(cells)

    def announce(self, confirmations: Iterable[tuple[Sequence[Configuration], Sequence[Problem]]]) -> None:
        """What will be asked for is measured when it is asked for."""

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        self.confirms.append((list(configs), list(problems)))
        paired = {}
        for config in configs:
            for problem in problems:
                if (seconds := self.seconds(config, problem)) is not None:
                    paired[config, problem] = (seconds,) * 5
        return TimeTable(paired=paired)


@dataclass
class Noisy:
    """Times with log-normal noise, in each block common to all finalists but for a part of their own."""

    seconds: Seconds
    random: np.random.Generator
    noise: float = 0.02
    drift: float = 0.05
    samples: int = 15

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> TimeTable:
        cells = {}
        for config, problem in dict.fromkeys(cell for group in groups for cell in group):
            if (seconds := self.seconds(config, problem)) is not None:
                cells[config, problem] = self._estimate(seconds)
        return TimeTable(cells)

    def announce(self, confirmations: Iterable[tuple[Sequence[Configuration], Sequence[Problem]]]) -> None:
        """What will be asked for is measured when it is asked for."""

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        paired = {}
        for problem in problems:
            common = self.random.normal(0.0, self.drift, self.samples)
            for config in configs:
                if (seconds := self.seconds(config, problem)) is not None:
                    own = self.random.normal(0.0, self.noise, self.samples)
                    paired[config, problem] = tuple(float(x) for x in seconds * np.exp(common + own))
        return TimeTable(paired=paired)

    def _estimate(self, seconds: float) -> Estimate:
        """Median with the interval between the order statistics that hold it in 95 % of cases (4th and 12th of 15)."""
        taken = np.sort(seconds * np.exp(self.random.normal(0.0, self.noise, 15)))
        return Estimate(float(taken[7]), float(taken[3]), float(taken[11]), 15)


LEGAL = FakeOracle()


def kept(result: ProtocolResult, *names: str) -> list[tuple[object, ...]]:
    return [tuple(config[name] for name in names) for config in result.survivors]


def by(times: dict[tuple[object, ...], float], *names: str) -> Exact:
    """Times that depend on these parameters only, the same on every problem; absent combinations do not run."""
    return Exact(lambda config, problem: times.get(tuple(config[name] for name in names)))


def same(config: Configuration, problem: Problem) -> float:
    return 1.0


WORK_GROUPS = [(8, 32, 1), (16, 16, 1), (32, 8, 1)]
THREAD_TILES = [(2, 8), (4, 4), (8, 2)]


def tiles(*rest: Step, depths: list[int] | None = None) -> Phases:
    """Nine macro-tile forks (five tiles), one step, then `rest`."""
    forked = fork(WorkGroup=WORK_GROUPS, ThreadTile=THREAD_TILES, Depth=depths or [8])
    start = {"WorkGroup": (16, 16, 1), "ThreadTile": (4, 4), "Depth": 8, "loads": 1}
    return phases(start, forked, benchmark(loads=[1, 2]), *rest)


def three_dimensional(config: Configuration) -> dict[str, tuple[int, int]]:
    rows, columns, _ = config.integers("WorkGroup")
    height, width = config.integers("ThreadTile")
    return {"MacroTile": (rows * height, columns * width)}


TILED = FakeOracle(derive=three_dimensional)
