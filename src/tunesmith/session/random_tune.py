"""Tuning random generators: a matrix of launch shapes for each, measured on every distribution and type, and chosen."""

from __future__ import annotations

import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import tunesmith
from tunesmith.bench import Bench, Policy, drift
from tunesmith.devices import choose as choose_device
from tunesmith.formats import google_benchmark
from tunesmith.kernels import families
from tunesmith.logic.random_choice import Objective, Selection, choose
from tunesmith.problems.random import DTYPES, GENERATORS, WIDTHS, Generator, Kind, random_type, scalars_for
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
    UserError,
    architecture_name,
)
from tunesmith.store import RunEnd, RunStart, RunState, Store

from . import events
from ._health import HealthWatch
from ._judge import FamilyJudge
from ._random_space import Matrix, matrix_for
from ._recorded import Ledger, OutOfBudgetError, RecordedMeasure
from ._run import CACHE, STORE

BYTES = 512 * 1024**2
"""What one call writes, unless told: rocRAND's `--bytes`."""

MOST_GROWTH = 3
"""How often the matrix grows while winners lie on its edge."""

PSEUDO_TYPES = ("float", "half", "double", "unsigned_int", "unsigned_char", "unsigned_short")
LONG_TYPES = (*PSEUDO_TYPES, "unsigned_long_long")
"""What rocRAND tunes; 64-bit integers of the 64-bit Threefries alone."""


@dataclass(frozen=True, slots=True)
class RandomTask:
    """What is to be tuned. None or empty leaves it to the defaults.

    `pattern` is searched in names like `philox4_32_10_uniform_float_t256_b1024`, as google-benchmark does. `bytes` are
    sizes of the output buffer; `dimensions` those of a quasi generator.
    """

    generators: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    value_types: tuple[str, ...] = ()
    pattern: str = ""
    blocks: tuple[int, ...] = ()
    grids: tuple[int, ...] = ()
    min_threads: int | None = None
    bytes: tuple[int, ...] = ()
    lam: float = 10.0
    seed: int = 0
    dimensions: int = 16
    grow: bool = True


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


def _policy() -> Policy:
    """Warm: a buffer far beyond the cache is cold by itself, and one inside it is wanted there."""
    return Policy(noise=0.01, maximum_samples=100, sampling_seconds=0.1, warm_up_seconds=0.03, cold=False)


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
    asked = tuple(_problems(task))
    languages = sorted({family.language for family in families("Random")})
    target = choose_device(device, languages=languages)
    problems = [
        problem for problem in asked if any(_wanted(task, problem.type, s) for s in _shapes(task, problem, target))
    ]
    if not problems:
        raise UserError("random tune", "nothing is left to tune", "ask for more generators, types or names")
    outcome = RandomOutcome(target, folder, task.bytes or (BYTES,))
    by_generator = _by_generator(problems)
    observe(events.RunBegan(target, len(by_generator)))
    watch = HealthWatch(target)

    def watched(event: events.Event) -> None:
        watch.happened()
        observe(event)

    with Store.open(folder / STORE) as store:
        run_id = store.begin_run(_start(target))
        began = time.monotonic()
        try:
            with Bench(target, _policy(), folder / CACHE, watched) as bench:
                deadline = began + 60 * budget_minutes if budget_minutes else None
                tuner = _Tuner(task, outcome, store, bench, watched, deadline)
                for generator, its in by_generator.items():
                    tuner.tune(generator, its)
                tuner.look_again()
        except OutOfBudgetError:
            outcome.state = RunState.INTERRUPTED
            outcome.look_at.append("the budget is spent; the same command with more goes on")
        except KeyboardInterrupt:
            outcome.state = RunState.INTERRUPTED
            raise
        except BaseException:
            outcome.state = RunState.FAILED
            raise
        finally:
            outcome.seconds = time.monotonic() - began
            outcome.health = watch.facts()
            outcome.look_at += watch.sentences()
            ledger = outcome.ledger
            store.end_run(run_id, RunEnd(outcome.state, outcome.seconds, ledger.measured, ledger.reused, ledger.cost))
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
        matrix = _matrix(task, generator, self.outcome.target)
        default = _default(generator)
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
        policy = _policy()
        measure = RecordedMeasure(
            judge, self.bench, self.store, policy, self.outcome.ledger, self.observe, self.deadline
        )
        measure.purpose = kind.name + (f", grown {growth}" if growth else "")
        family = next(f for f in families("Random") if f.language in _languages(self.outcome.target))
        start = family.space(kind, self.outcome.target).defaults
        legal: dict[Configuration, LaunchShape] = {}
        for shape in shapes:
            config = start | {"BlockSize": shape.block, "GridSize": shape.grid}
            why = next(iter(judge.rejections(config)), None)
            if why is None:
                legal[config] = shape
            else:
                self.outcome.rejected[f"{kind.name}_t{shape.block}_b{shape.grid}"] = why
        chosen = [config for config, shape in legal.items() if _wanted(self.task, kind, shape)]
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


def _problems(task: RandomTask) -> Iterator[Problem]:
    try:
        re.compile(task.pattern)
    except re.error as error:
        what = f"{task.pattern!r} is no regular expression: {error}"
        raise UserError("--benchmark_filter", what, "give one, such as 'philox.*float'") from error
    for option, given, known in (
        ("--generators", task.generators, tuple(GENERATORS)),
        ("--distributions", task.distributions, tuple(WIDTHS)),
        ("--types", task.value_types, tuple(DTYPES)),
    ):
        for name in given:
            if name not in known:
                raise UserError(option, f"there is no {name}", f"there are {', '.join(known)}")
    for name in task.generators or GENERATORS:
        generator = GENERATORS[name]
        for distribution, widths in WIDTHS.items():
            for value_type in _types(generator, task.value_types):
                if value_type in widths and (not task.distributions or distribution in task.distributions):
                    kind = random_type(name, distribution, value_type, dynamic=True)
                    yield from _sized(task, generator, kind)


def _types(generator: Generator, asked: Sequence[str]) -> Sequence[str]:
    if asked:
        return asked
    is_long = generator.name.startswith("threefry") and "_64_" in generator.name
    return LONG_TYPES if is_long else PSEUDO_TYPES


def _sized(task: RandomTask, generator: Generator, kind: ProblemType) -> Iterator[Problem]:
    fields = kind.fields
    distribution, item = fields.word("Distribution"), np.dtype(DTYPES[fields.word("ValueType")]).itemsize
    scalars = scalars_for(distribution, seed=task.seed, lam=task.lam)
    for size in task.bytes or (BYTES,):
        count = max(1, size // item)
        if generator.kind is Kind.QUASI:
            yield Problem(kind, (max(1, count // task.dimensions), task.dimensions), scalars=scalars)
        else:
            yield Problem(kind, (count,), scalars=scalars)


def _shapes(task: RandomTask, problem: Problem, target: Target) -> tuple[LaunchShape, ...]:
    """What is tried on a problem at first."""
    generator = GENERATORS[problem.type.fields.word("Generator")]
    return (_default(generator), *_matrix(task, generator, target).shapes())


def _matrix(task: RandomTask, generator: Generator, target: Target) -> Matrix:
    """What is tried at first; a quasi generator's grid sizes are those of one of its dimensions."""
    matrix = matrix_for(target, task.blocks, task.grids, task.min_threads)
    return matrix.shared_by(task.dimensions) if generator.kind is Kind.QUASI else matrix


def _wanted(task: RandomTask, kind: ProblemType, shape: LaunchShape) -> bool:
    return not task.pattern or bool(re.search(task.pattern, f"{_plain_name(kind)}_t{shape.block}_b{shape.grid}"))


def _default(generator: Generator) -> LaunchShape:
    return LaunchShape(generator.default_block, generator.default_grid)


def _plain_name(kind: ProblemType) -> str:
    return "_".join(kind.fields.word(name) for name in ("Generator", "Distribution", "ValueType"))


def _by_generator(problems: Sequence[Problem]) -> dict[Generator, dict[ProblemType, list[Problem]]]:
    found: dict[Generator, dict[ProblemType, list[Problem]]] = defaultdict(lambda: defaultdict(list))
    for problem in problems:
        found[GENERATORS[problem.type.fields.word("Generator")]][problem.type].append(problem)
    return found


def _defaults() -> dict[str, LaunchShape]:
    return {name: _default(one) for name, one in GENERATORS.items()}


def _languages(target: Target) -> tuple[str, ...]:
    from tunesmith.devices import APIS

    return APIS[target.api].languages


def _row(one: Measured, target: Target) -> RandomRow:
    fields, estimate = one.problem.type.fields, one.measurement.estimate
    assert estimate is not None
    size = _bytes(one.problem)
    return RandomRow(
        generator=fields.word("Generator"),
        distribution=fields.word("Distribution"),
        value_type=fields.word("ValueType"),
        shape=one.shape,
        architecture=architecture_name(target.architecture),
        gigabytes_per_second=size / estimate.seconds / 1e9,
        file="this run",
        name=_entry(one).name,
        bytes=size,
        interval=(size / estimate.high / 1e9, size / estimate.low / 1e9),
    )


def _entry(one: Measured) -> google_benchmark.Entry:
    fields, measurement = one.problem.type.fields, one.measurement
    return google_benchmark.Entry(
        fields.word("Generator"),
        fields.word("Distribution"),
        fields.word("ValueType"),
        one.shape,
        _bytes(one.problem),
        len(measurement.samples),
        measurement.estimate,
        "" if measurement.estimate else f"{measurement.outcome.value}: {measurement.reason} {measurement.detail}",
    )


def _bytes(problem: Problem) -> int:
    return int(np.prod(problem.sizes)) * np.dtype(DTYPES[problem.type.fields.word("ValueType")]).itemsize


def _start(target: Target) -> RunStart:
    return RunStart(
        command=tuple(sys.argv),
        tuning_file="",
        tuning_file_sha256="",
        device=target.name,
        driver=target.driver,
        selector=target.selector,
        version=tunesmith.__version__,
    )
