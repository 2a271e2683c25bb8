"""The plan of tuning random generators: launch shapes of each are measured for every distribution and type.

The best shapes are decided by `logic.random.choice.choose_shapes` (`RandomPlan.selection`).
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.bench import Policy
from tunesmith.devices import choose as choose_device
from tunesmith.formats.random import google_benchmark
from tunesmith.formats.random.outputs import write_selection
from tunesmith.formats.random.store import cautions_of
from tunesmith.kernels import families_of
from tunesmith.logic.random.choice import Selection, choose_shapes
from tunesmith.logic.random.table import FILE_NAME as TABLE
from tunesmith.problems.random import GeneratorSpec
from tunesmith.protocol import DRIFT
from tunesmith.records import (
    Configuration,
    Estimate,
    LaunchShape,
    Measurement,
    Problem,
    ProblemType,
    RandomRow,
    Target,
    architecture_name,
)
from tunesmith.search import Candidates, Growing, MeasuredTimes, MeasureMode
from tunesmith.session.frame import events
from tunesmith.session.frame.ahead import Screening, screen_ahead
from tunesmith.session.frame.earlier import write_table
from tunesmith.session.frame.many_devices import BenchFactory
from tunesmith.session.frame.measure import ROUNDS_MORE
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .task import BYTES, RandomTask, configuration_of, default_shape, generator_of

POLICY = Policy(noise=0.01, maximum_samples=100, sampling_seconds=0.1, warm_up_seconds=0.03, cold=False)
"""Times are taken warm: a buffer far larger than the cache is cold anyway, and a small one shall stay in the cache."""

MOST_GROWTH = 3
"""The most times that the matrix grows while winners lie on its edge."""


@dataclass(frozen=True, slots=True)
class MeasuredShape:
    """The measurement of a launch shape on a problem."""

    problem: Problem
    shape: LaunchShape
    measurement: Measurement

    @property
    def seconds(self) -> Estimate:
        """The time of a shape that ran."""
        assert self.measurement.estimate is not None
        return self.measurement.estimate


def tune_random(
    task: RandomTask,
    folder: Path,
    *,
    device: str | Target | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    wait: bool = False,
    benchmark_out: Path | None = None,
    observe: events.Observer = events.nobody,
    benches: BenchFactory | None = None,
) -> RunOutcome[RandomPlan]:
    """Measure launch shapes and choose; everything goes into `folder`, and the same call resumes a stopped run.

    `reuse` says which earlier measurements are used again. `benchmark_out` is another path for the rows of the first
    size. Raises UserError for a task that makes no sense, KeyboardInterrupt after everything is written.
    """
    task.check()
    target = choose_device(device, languages=sorted({family.language for family in families_of("Random")}))
    return carry_out(
        RandomPlan(task, target, benchmark_out),
        folder,
        budget_minutes=budget_minutes,
        reuse=reuse,
        store=store,
        wait=wait,
        observe=observe,
        benches=benches,
    )


class RandomPlan(RunPlan):
    """`measured` has the measurement of every shape so far."""

    policy = POLICY
    loads_the_host = False
    may_share = True

    def __init__(self, task: RandomTask, target: Target, benchmark_out: Path | None = None) -> None:
        self.task, self.target, self._benchmark_out = task, target, benchmark_out
        self._problems = task.problems(target)
        self.steps = len(self._problems)
        self.measured: list[MeasuredShape] = []
        self.complaints: list[str] = []
        self._decided: list[str] = []
        self._cautions: tuple[str, ...] = ()
        self._earlier: list[str] | None = None

    def carry_out(self, run: Run) -> None:
        for generator, problems in self._problems.items():
            began = time.monotonic()
            self._tune(run, generator, problems)
            self._decided.append(generator.name)
            decisions = self._choose([generator.name]).decisions
            shapes = "; ".join(f"{decision.chosen} {decision.score:.3f} of the default" for decision in decisions)
            run.say(f"{generator.name}: {shapes or 'nothing ran'}, {time.monotonic() - began:.0f} s")
            run.decided()

    @property
    def selection(self) -> Selection:
        """The shapes chosen for the generators that are decided."""
        return self._choose(self._decided)

    @property
    def unfinished(self) -> str:
        done, count = len(self._decided), len(self._problems)
        return f"{done} of {count} generators are decided" if done < count else ""

    def rows(self) -> list[RandomRow]:
        """A row for the selection for each shape that ran."""
        rows = [_row(measured, self.target) for measured in self.measured if measured.measurement.estimate]
        return [replace(row, cautions=self._cautions) for row in rows]

    def outputs(self, run: Run) -> Iterator[Output]:
        """A file of google-benchmark's rows for each size of the buffer; then headers and the table of chosen shapes.

        Each size has its own file, since rocRAND's script does not tell sizes apart: it would take rows of two sizes in
        one file for repetitions.
        """
        if not self._decided:
            return
        self._earlier = cautions_of(run.store, self.target) if self._earlier is None else self._earlier
        self._cautions = tuple(dict.fromkeys((*self._earlier, *run.cautions())))
        entries = [_entry(measured) for measured in self.measured]
        for index, size in enumerate(self.task.bytes or (BYTES,)):
            path = Path(f"benchmark_{size}.json")
            if index == 0 and self._benchmark_out is not None:
                path = self._benchmark_out.absolute()
            of_size = [entry for entry in entries if _is_of_size(entry.bytes, size)]
            text = google_benchmark.write(of_size, _context(self.target, size, self._cautions))
            own = [generator.name for generator in self._problems]
            yield Output(path, partial(write_table, own, _generators, run.say, text=text))
        yield Output(Path(TABLE), self._write_selection)

    def remarks(self) -> Iterator[str]:
        yield from self.complaints

    def _write_selection(self, table: Path) -> tuple[Path, ...]:
        written = write_selection(self.selection.decisions, table.parent)
        self.complaints = [str(complaint) for complaint in written.complaints]
        return (*written.headers, *([written.table] if written.table else []))

    def _tune(self, run: Run, generator: GeneratorSpec, problems: Mapping[ProblemType, Sequence[Problem]]) -> None:
        """Measure the matrix, which grows while winners lie on its edge."""
        matrix = self.task.matrix(generator, self.target)

        def candidates() -> Candidates:
            shapes = dict.fromkeys((default_shape(generator), *matrix.shapes()))
            return replace(Candidates.of_list(map(_as_configuration, shapes)), mode=MeasureMode.FULL)

        def beyond(before: Candidates, results: MeasuredTimes) -> Candidates:
            nonlocal matrix
            grown = matrix.beyond(self._winners(generator)) if self.task.grow else matrix
            if grown == matrix:
                return before
            matrix = grown
            return candidates()

        search = Growing(beyond, MOST_GROWTH).start(candidates(), np.random.default_rng(0))
        growth = 0
        while batch := search.ask():
            shapes = [_shape_of(config) for config in batch.configurations]
            screen_ahead([self._screening(run, kind, of_type, shapes) for kind, of_type in problems.items()])
            for kind, of_type in problems.items():
                self.measured += self._measure(run, kind, of_type, shapes, growth)
            search.tell(batch, {})
            growth += 1
        self._repeat(run, generator)

    def _repeat(self, run: Run, generator: GeneratorSpec) -> None:
        """On the host's CPU, measure the default and all shapes that may be the fastest on a problem in more rounds.

        If the rounds show that these shapes are slower than they seemed, others may be the fastest, and are repeated
        too. A shape without a rival needs no rounds.
        """
        rounds = ROUNDS_MORE.get(self.target.kind, 0)
        if not rounds:
            return
        for problem in dict.fromkeys(measured.problem for measured in self.measured):
            if generator_of(problem.type) != generator:
                continue
            repeated: set[LaunchShape] = set()
            while more := self._perhaps_fastest(problem, generator) - repeated:
                self._take_rounds(run, problem, more, rounds)
                repeated |= more

    def _perhaps_fastest(self, problem: Problem, generator: GeneratorSpec) -> set[LaunchShape]:
        """The default shape, and the shapes whose times may be the best if the machine's speed has drifted."""
        ran = [row for row in self.measured if row.problem == problem and row.measurement.estimate]
        if len(ran) < 2:
            return set()
        reach = (1 + DRIFT) * min((row.seconds.high for row in ran), default=0.0)
        return {row.shape for row in ran if row.shape == default_shape(generator) or row.seconds.low <= reach}

    def _take_rounds(self, run: Run, problem: Problem, shapes: set[LaunchShape], rounds: int) -> None:
        measure, kind = run.measure(problem.type), problem.type
        measure.purpose = f"{kind.name}, again"
        by_config = {configuration_of(kind, shape, self.target): shape for shape in sorted(shapes)}
        measure.repeat(list(by_config), problem, rounds)
        measurements = measure.over_rounds([(config, problem) for config in by_config], rounds)
        repeated = {(problem, by_config[config]): measurement for (config, _), measurement in measurements.items()}
        self.measured = [
            replace(row, measurement=repeated.get((row.problem, row.shape), row.measurement)) for row in self.measured
        ]

    def _measure(
        self, run: Run, kind: ProblemType, problems: Sequence[Problem], shapes: Sequence[LaunchShape], growth: int
    ) -> Iterator[MeasuredShape]:
        measure = run.measure(kind)
        measure.purpose = kind.name + (f", grown {growth}" if growth else "")
        by_config = self._configurations(kind, shapes)
        legal = [config for config in by_config if not measure.oracle.rejections(config)]
        run.anchor.visit_if_due(measure, measure.screen([legal], problems, racing=False).cells)
        cells = [(config, problem) for config in legal for problem in problems]
        for (config, problem), measurement in measure.lookup(cells, racing=False).items():
            yield MeasuredShape(problem, by_config[config], measurement)

    def _configurations(self, kind: ProblemType, shapes: Sequence[LaunchShape]) -> dict[Configuration, LaunchShape]:
        """The configurations of the shapes that the task includes for a type."""
        included = [shape for shape in shapes if self.task.includes(kind, shape)]
        return {configuration_of(kind, shape, self.target): shape for shape in included}

    def _screening(
        self, run: Run, kind: ProblemType, problems: Sequence[Problem], shapes: Sequence[LaunchShape]
    ) -> Screening:
        """What `_measure` will ask for. Several devices measure all types of a generator at once."""
        measure, configs = run.measure(kind), self._configurations(kind, shapes)
        legal = [config for config in configs if not measure.oracle.rejections(config)]
        return Screening(measure, [[(config, problem) for config in legal for problem in problems]])

    def _winners(self, generator: GeneratorSpec) -> list[LaunchShape]:
        """The shape chosen for all distributions and types, and the shapes chosen for a single one."""
        decisions = self._choose([generator.name]).decisions
        overrides = [override for decision in decisions for override in decision.overrides]
        return [decision.chosen for decision in decisions] + [override.shape for override in overrides]

    def _choose(self, generators: Sequence[str]) -> Selection:
        rows = [row for row in self.rows() if row.generator in generators]
        return choose_shapes(rows)


def _as_configuration(shape: LaunchShape) -> Configuration:
    return Configuration({"BlockSize": shape.block, "GridSize": shape.grid})


def _shape_of(config: Configuration) -> LaunchShape:
    return LaunchShape(config.integer("BlockSize"), config.integer("GridSize"))


def _row(measured: MeasuredShape, target: Target) -> RandomRow:
    entry = _entry(measured)
    assert entry.estimate is not None
    return RandomRow(
        generator=entry.generator,
        distribution=entry.distribution,
        value_type=entry.value_type,
        shape=measured.shape,
        architecture=architecture_name(target.architecture),
        gigabytes_per_second=entry.bytes / entry.estimate.seconds / 1e9,
        file="this run",
        name=entry.name,
        bytes=entry.bytes,
        interval=(entry.bytes / entry.estimate.high / 1e9, entry.bytes / entry.estimate.low / 1e9),
    )


def _entry(measured: MeasuredShape) -> google_benchmark.BenchmarkEntry:
    return google_benchmark.entry(measured.problem, measured.shape, measured.measurement)


def _generators(text: str) -> set[str]:
    """The generators with rows in a file of google-benchmark."""
    return {row.generator for row in google_benchmark.read_rows(json.loads(text), "").rows}


def _is_of_size(written: int, requested: int) -> bool:
    """Whether a call that writes so many bytes is of a requested size. A quasi generator writes a whole number of
    points in each dimension, so it may write a little less."""
    return requested * 0.98 <= written <= requested or written == requested


def _context(target: Target, size: int, cautions: Sequence[str]) -> dict[str, object]:
    return google_benchmark.context(
        target,
        size,
        date=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        host_name=platform.node(),
        num_cpus=os.cpu_count() or 1,
        load_avg=list(os.getloadavg()),
        **google_benchmark.cautions_context(cautions),
    )
