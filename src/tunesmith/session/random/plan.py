"""The plan of tuning random generators: launch shapes of each, measured for every distribution and type."""

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
from tunesmith.kernels import families
from tunesmith.logic.random.choice import Selection, choose
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
from tunesmith.search import Candidates, Growing, MeasureMode, Told
from tunesmith.session.frame import events
from tunesmith.session.frame.earlier import write_table
from tunesmith.session.frame.measure import ROUNDS_MORE
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .task import BYTES, RandomTask, configuration_of, default_shape, generator_of

POLICY = Policy(noise=0.01, maximum_samples=100, sampling_seconds=0.1, warm_up_seconds=0.03, cold=False)
"""Warm: a buffer far beyond the cache is cold by itself, and one inside it is wanted there."""

MOST_GROWTH = 3
"""How often the matrix grows while winners lie on its edge."""


@dataclass(frozen=True, slots=True)
class MeasuredShape:
    """A launch shape on a problem: what came of it."""

    problem: Problem
    shape: LaunchShape
    measurement: Measurement

    @property
    def seconds(self) -> Estimate:
        """Of one that ran."""
        assert self.measurement.estimate is not None
        return self.measurement.estimate


def tune_random(
    task: RandomTask,
    folder: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    benchmark_out: Path | None = None,
    observe: events.Observer = events.nobody,
) -> RunOutcome[RandomPlan]:
    """Measure launch shapes and choose; everything goes into `folder`, and the same call goes on with a stopped run.

    `reuse` says what of an earlier run counts. `benchmark_out` is another place for the rows of the first size. Raises
    UserError for a task that means nothing, KeyboardInterrupt after everything was put away.
    """
    task.check()
    target = choose_device(device, languages=sorted({family.language for family in families("Random")}))
    return carry_out(
        RandomPlan(task, target, benchmark_out), folder, budget_minutes=budget_minutes, reuse=reuse, observe=observe
    )


class RandomPlan(RunPlan):
    """`measured` is everything that was measured."""

    policy = POLICY
    loads_the_host = False

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
            chosen = self._choose([generator.name]).decisions
            said = "; ".join(f"{one.chosen} {one.score:.3f} of the default" for one in chosen) or "nothing ran"
            run.say(f"{generator.name}: {said}, {time.monotonic() - began:.0f} s")
            run.decided()

    @property
    def selection(self) -> Selection:
        """What is chosen for the generators that are decided."""
        return self._choose(self._decided)

    @property
    def unfinished(self) -> str:
        done, count = len(self._decided), len(self._problems)
        return f"{done} of {count} generators are decided" if done < count else ""

    def rows(self) -> list[RandomRow]:
        """What ran, as the selection takes it."""
        rows = [_row(one, self.target) for one in self.measured if one.measurement.estimate]
        return [replace(row, cautions=self._cautions) for row in rows]

    def outputs(self, run: Run) -> Iterator[Output]:
        """Rows of google-benchmark for each size of the buffer; then headers and the table of what was chosen.

        rocRAND's script does not tell sizes apart, so that it would take rows of two sizes in one file for repetitions.
        """
        if not self._decided:
            return
        self._earlier = cautions_of(run.store, self.target) if self._earlier is None else self._earlier
        self._cautions = tuple(dict.fromkeys((*self._earlier, *run.cautions())))
        entries = [_entry(one) for one in self.measured]
        for index, size in enumerate(self.task.bytes or (BYTES,)):
            path = Path(f"benchmark_{size}.json")
            if index == 0 and self._benchmark_out is not None:
                path = self._benchmark_out.absolute()
            of_size = [entry for entry in entries if _is_of(entry.bytes, size)]
            text = google_benchmark.write(of_size, _context(self.target, size, self._cautions))
            own = [generator.name for generator in self._problems]
            yield Output(path, partial(write_table, own, _generators, run.say, text=text))
        yield Output(Path(TABLE), self._write_selection)

    def remarks(self) -> Iterator[str]:
        yield from self.complaints

    def _write_selection(self, table: Path) -> tuple[Path, ...]:
        made = write_selection(self.selection.decisions, table.parent)
        self.complaints = [str(complaint) for complaint in made.complaints]
        return (*made.headers, *([made.table] if made.table else []))

    def _tune(self, run: Run, generator: GeneratorSpec, problems: Mapping[ProblemType, Sequence[Problem]]) -> None:
        """The matrix, which grows while winners lie on its edge."""
        matrix = self.task.matrix(generator, self.target)

        def candidates() -> Candidates:
            shapes = dict.fromkeys((default_shape(generator), *matrix.shapes()))
            return replace(Candidates.of_list(map(_as_configuration, shapes)), mode=MeasureMode.FULL)

        def beyond(before: Candidates, told: Told) -> Candidates:
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
            for kind, its in problems.items():
                self.measured += self._measure(run, kind, its, shapes, growth)
            search.tell(batch, {})
            growth += 1
        self._repeat(run, generator)

    def _repeat(self, run: Run, generator: GeneratorSpec) -> None:
        """In more rounds, where the host is the device: the default, and what may be the fastest somewhere.

        The rounds may show that those were slower than they seemed; then others may be the fastest, and follow. A shape
        that is alone has no rival, and needs no rounds.
        """
        rounds = ROUNDS_MORE.get(self.target.kind, 0)
        if not rounds:
            return
        for problem in dict.fromkeys(one.problem for one in self.measured):
            if generator_of(problem.type) != generator:
                continue
            repeated: set[LaunchShape] = set()
            while more := self._perhaps_fastest(problem, generator) - repeated:
                self._take_rounds(run, problem, more, rounds)
                repeated |= more

    def _perhaps_fastest(self, problem: Problem, generator: GeneratorSpec) -> set[LaunchShape]:
        """The default, and what no difference of the machine's speed rules out."""
        ran = [one for one in self.measured if one.problem == problem and one.measurement.estimate]
        if len(ran) < 2:
            return set()
        reach = (1 + DRIFT) * min((one.seconds.high for one in ran), default=0.0)
        return {one.shape for one in ran if one.shape == default_shape(generator) or one.seconds.low <= reach}

    def _take_rounds(self, run: Run, problem: Problem, shapes: set[LaunchShape], rounds: int) -> None:
        measure, kind = run.measure(problem.type), problem.type
        measure.purpose = f"{kind.name}, again"
        wanted = {configuration_of(kind, shape, self.target): shape for shape in sorted(shapes)}
        measure.repeat(list(wanted), problem, rounds)
        known = measure.over_rounds([(config, problem) for config in wanted], rounds)
        again = {(problem, wanted[config]): taken for (config, _), taken in known.items()}
        self.measured = [
            replace(one, measurement=again.get((one.problem, one.shape), one.measurement)) for one in self.measured
        ]

    def _measure(
        self, run: Run, kind: ProblemType, problems: Sequence[Problem], shapes: Sequence[LaunchShape], growth: int
    ) -> Iterator[MeasuredShape]:
        measure = run.measure(kind)
        measure.purpose = kind.name + (f", grown {growth}" if growth else "")
        wanted = {configuration_of(kind, one, self.target): one for one in shapes if self.task.wants(kind, one)}
        chosen = [config for config in wanted if not measure.oracle.rejections(config)]
        run.anchor.visit_if_due(measure, measure.screen([chosen], problems, racing=False).cells)
        cells = [(config, problem) for config in chosen for problem in problems]
        for (config, problem), measurement in measure.lookup(cells, racing=False).items():
            yield MeasuredShape(problem, wanted[config], measurement)

    def _winners(self, generator: GeneratorSpec) -> list[LaunchShape]:
        """The shape for all, and those for one distribution and type where there are such."""
        decisions = self._choose([generator.name]).decisions
        return [d.chosen for d in decisions] + [o.shape for d in decisions for o in d.overrides]

    def _choose(self, generators: Sequence[str]) -> Selection:
        rows = [row for row in self.rows() if row.generator in generators]
        return choose(rows)


def _as_configuration(shape: LaunchShape) -> Configuration:
    return Configuration({"BlockSize": shape.block, "GridSize": shape.grid})


def _shape_of(config: Configuration) -> LaunchShape:
    return LaunchShape(config.integer("BlockSize"), config.integer("GridSize"))


def _row(one: MeasuredShape, target: Target) -> RandomRow:
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


def _entry(one: MeasuredShape) -> google_benchmark.BenchmarkEntry:
    return google_benchmark.entry(one.problem, one.shape, one.measurement)


def _generators(text: str) -> set[str]:
    """Those that a file of google-benchmark has rows of."""
    return {row.generator for row in google_benchmark.rows(json.loads(text), "").rows}


def _is_of(written: int, asked: int) -> bool:
    """A quasi generator writes a whole number of points in each dimension, a little less than asked."""
    return asked * 0.98 <= written <= asked or written == asked


def _context(target: Target, size: int, cautions: Sequence[str]) -> dict[str, object]:
    return google_benchmark.context(
        target,
        size,
        date=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        host_name=platform.node(),
        num_cpus=os.cpu_count() or 1,
        load_avg=list(os.getloadavg()),
        **google_benchmark.told(cautions),
    )
