"""Tuning random generators: a matrix of launch shapes for each, measured on every distribution and type, and chosen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.bench import Bench, Policy, drift
from tunesmith.devices import choose as choose_device
from tunesmith.formats import google_benchmark
from tunesmith.kernels import families
from tunesmith.logic.random_choice import Objective, Selection, choose
from tunesmith.problems.random import GENERATORS, Generator
from tunesmith.protocol import Cell
from tunesmith.records import (
    Configuration,
    LaunchShape,
    Measurement,
    Problem,
    ProblemType,
    RandomRow,
    Rejection,
    Target,
    architecture_name,
)
from tunesmith.session.frame import events
from tunesmith.session.frame.health import HealthWatch
from tunesmith.session.frame.measure import Ledger, RecordedMeasure
from tunesmith.session.frame.oracle import FamilyJudge
from tunesmith.session.frame.record import booked, run_start
from tunesmith.session.tune.tuning import CACHE, STORE
from tunesmith.store import RunState, Store

from .task import BYTES, RandomTask, configuration_of, default_shape

POLICY = Policy(noise=0.01, maximum_samples=100, sampling_seconds=0.1, warm_up_seconds=0.03, cold=False)
"""Warm: a buffer far beyond the cache is cold by itself, and one inside it is wanted there."""

MOST_GROWTH = 3
"""How often the matrix grows while winners lie on its edge."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A launch shape on a problem: what came of it."""

    problem: Problem
    shape: LaunchShape
    measurement: Measurement


@dataclass
class RandomOutcome:
    """What a tuning of generators came to: everything measured, what was not and why, and the choice."""

    target: Target
    folder: Path
    bytes: tuple[int, ...]
    measured: list[Measured] = field(default_factory=list)
    rejected: dict[str, Rejection] = field(default_factory=dict)
    selection: Selection | None = None
    state: RunState = RunState.FINISHED
    ledger: Ledger = field(default_factory=Ledger)
    seconds: float = 0.0
    grown: int = 0
    health: dict[str, float] = field(default_factory=dict)
    look_at: list[str] = field(default_factory=list)

    def rows(self) -> list[RandomRow]:
        """What ran, as the selection takes it."""
        return [_row(one, self.target) for one in self.measured if one.measurement.estimate]

    def entries(self) -> list[google_benchmark.Entry]:
        """Everything that was tried, as google-benchmark writes it."""
        return [_entry(one) for one in self.measured]


def tune_random(
    task: RandomTask,
    folder: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    observe: events.Observer = events.nobody,
) -> RandomOutcome:
    """Measure launch shapes and choose; everything goes into `folder`, and the same call goes on with a stopped run.

    Raises UserError for a task that means nothing, KeyboardInterrupt after everything was put away.
    """
    task.check()
    languages = sorted({family.language for family in families("Random")})
    target = choose_device(device, languages=languages)
    by_generator = task.problems(target)
    outcome = RandomOutcome(target, folder, task.bytes or (BYTES,))
    observe(events.RunBegan(target, len(by_generator)))
    watch = HealthWatch(target)
    watched = watch.beside(observe)
    deadline = time.monotonic() + 60 * budget_minutes if budget_minutes else None
    with (
        Store.open(folder / STORE) as store,
        booked(outcome, store, run_start(target), watch),
        Bench(target, POLICY, folder / CACHE, watched) as bench,
    ):
        tuner = _Tuner(task, outcome, store, bench, watched, deadline)
        for generator, its in by_generator.items():
            tuner.tune(generator, its)
        tuner.look_again()
    outcome.selection = choose(outcome.rows(), Objective.GEOMEAN, _defaults())
    return outcome


@dataclass
class _Tuner:
    """Carries one generator after the other through its matrix, which grows while winners lie on its edge."""

    task: RandomTask
    outcome: RandomOutcome
    store: Store
    bench: Bench
    observe: events.Observer
    deadline: float | None
    anchor: tuple[RecordedMeasure, Cell] | None = None

    def look_again(self) -> None:
        """The first cell that ran once more, when anything new was measured: has the machine changed meanwhile?"""
        if self.anchor is None or not self.outcome.ledger.measured:
            return
        measure, cell = self.anchor
        first = measure.lookup([cell], racing=False)[cell].estimate
        now = measure.again(cell, f"anchor/{time.time_ns()}").estimate
        if first and now and (seen := drift(first, now)).alarm:
            self.outcome.look_at.append(f"the first launch took {seen.ratio:.2f} of its time when measured again")

    def tune(self, generator: Generator, problems: Mapping[ProblemType, Sequence[Problem]]) -> None:
        began = time.monotonic()
        task = self.task
        matrix = task.matrix(generator, self.outcome.target)
        default = default_shape(generator)
        done: set[LaunchShape] = set()
        for growth in range(MOST_GROWTH + 1):
            fresh = [shape for shape in dict.fromkeys((default, *matrix.shapes())) if shape not in done]
            made = [one for kind, its in problems.items() for one in self._measure(kind, its, fresh, growth)]
            self.outcome.measured += made
            done |= set(fresh)
            if not task.grow:
                break
            grown = matrix.beyond(self._winners(generator))
            if grown == matrix:
                break
            matrix, self.outcome.grown = grown, self.outcome.grown + 1
        self.observe(events.Said(f"{generator.name}: {self._told(generator)}, {time.monotonic() - began:.0f} s"))

    def _measure(
        self, kind: ProblemType, problems: Sequence[Problem], shapes: Sequence[LaunchShape], growth: int
    ) -> Iterator[Measured]:
        judge = FamilyJudge(kind, self.outcome.target)
        measure = RecordedMeasure(
            judge, self.bench, self.store, POLICY, self.outcome.ledger, self.observe, self.deadline
        )
        measure.purpose = kind.name + (f", grown {growth}" if growth else "")
        legal: dict[Configuration, LaunchShape] = {}
        for shape in shapes:
            config = configuration_of(kind, shape, self.outcome.target)
            why = next(iter(judge.rejections(config)), None)
            if why is None:
                legal[config] = shape
            else:
                self.outcome.rejected[f"{kind.name}_t{shape.block}_b{shape.grid}"] = why
        chosen = [config for config, shape in legal.items() if self.task.wants(kind, shape)]
        measure.screen([chosen], problems, racing=False)
        cells = [(config, problem) for config in chosen for problem in problems]
        for (config, problem), measurement in measure.lookup(cells, racing=False).items():
            if self.anchor is None and measurement.estimate:
                self.anchor = measure, (config, problem)
            yield Measured(problem, legal[config], measurement)

    def _winners(self, generator: Generator) -> list[LaunchShape]:
        """The shape for all, and those for one distribution and type where there are such."""
        rows = [row for row in self.outcome.rows() if row.generator == generator.name]
        decisions = choose(rows, Objective.GEOMEAN, _defaults()).decisions
        return [d.chosen for d in decisions] + [o.shape for d in decisions for o in d.overrides]

    def _told(self, generator: Generator) -> str:
        rows = [row for row in self.outcome.rows() if row.generator == generator.name]
        decisions = choose(rows, Objective.GEOMEAN, _defaults()).decisions
        return "; ".join(f"{d.chosen} {d.score:.3f} of the default" for d in decisions) or "nothing ran"


def _defaults() -> dict[str, LaunchShape]:
    return {name: default_shape(one) for name, one in GENERATORS.items()}


def _row(one: Measured, target: Target) -> RandomRow:
    entry = _entry(one)
    assert entry.estimate is not None
    return RandomRow(
        generator=entry.generator,
        distribution=entry.distribution,
        value_type=entry.value_type,
        shape=one.shape,
        architecture=architecture_name(target.architecture),
        gigabytes_per_second=entry.bytes / entry.estimate.seconds / 1e9,
        file="this run",
        name=entry.name,
        bytes=entry.bytes,
        interval=(entry.bytes / entry.estimate.high / 1e9, entry.bytes / entry.estimate.low / 1e9),
    )


def _entry(one: Measured) -> google_benchmark.Entry:
    return google_benchmark.entry(one.problem, one.shape, one.measurement)
