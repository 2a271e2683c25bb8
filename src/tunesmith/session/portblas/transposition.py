"""Measuring one transposition, and deciding its winner (`Transposition._decide`).

The order is the original's: the system BLAS, the current library, every combination of the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tunesmith.devices import discover
from tunesmith.kernels import KERNELS, LANGUAGE, VENDOR
from tunesmith.protocol import Contest, ContestDecision, Objective, choose
from tunesmith.records import Configuration, Measurement, Problem, Rejection, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.ahead import Screening
from tunesmith.session.frame.measure import ROUNDS_MORE, RecordedMeasure
from tunesmith.session.frame.run import Run

from .current import current_choice
from .guided import measure_guided
from .rows import RowKind, SolutionRow, TunedTransposition
from .task import PortBlasTask

LONG_LIST = 500
"""A run with a budget is guided if it has more candidates than this, even if nobody asked for it."""


class Transposition:
    """Measures one transposition of a task; `tuned` gives the results so far, even if measuring was stopped.

    The system BLAS always gets a strided batch, since it has no interleaved ones.
    """

    def __init__(self, name: str, task: PortBlasTask, listed: Sequence[Configuration], run: Run) -> None:
        self.name, self._task, self._listed, self._run = name, task, listed, run
        self._problem = task.problem(task.kind(name))
        self._strided = task.problem(task.kind(name, interleaved=False))
        target = run.outcome.target
        self._ours = run.measure(self._problem.type)
        self._system = run.measure(self._strided.type, blas_target(target))
        self._current = current_choice(task, self._ours.oracle, self._problem, run.outcome.folder, run.complain)
        self._legal = [config for config in listed if _rejection(self._ours, config, self._problem) is None]
        by_key = {self._ours.key((config, self._problem)): config for config in reversed(self._legal)}
        self._different = list(by_key.values())[::-1]
        self._rounds = ROUNDS_MORE.get(target.kind, 0)
        self._searched = task.guided or (run.deadline is not None and len(self._different) > LONG_LIST)
        self._vendor = Configuration({LANGUAGE: KERNELS[VENDOR].language})
        self._decision: ContestDecision | None = None

    def measure(self) -> None:
        """Measure everything once, on a CPU in further rounds, then the finalists interleaved. Raises
        OutOfBudgetError."""
        name, kernels = self.name, len(self._different)
        self._run.observe(events.GroupBegan(self._problem.type, 0))
        self._screen(self._system, f"{name}: system BLAS", [self._vendor], self._strided)
        self._screen(self._ours, f"{name}: current library", [self._current.config], self._problem)
        if self._searched:
            self._ours.purpose = f"{name}: guided through {kernels} kernels"
            measure_guided(self._run, self._ours, self._different, self._problem)
        else:
            self._screen(self._ours, f"{name}: {kernels} kernels", self._different, self._problem)
        if self._rounds:
            self._ours.purpose = f"{name}: what ran, again"
            configs = dict.fromkeys((self._current.config, *self._different))
            self._ours.repeat(list(configs), self._problem, self._rounds)
            self._system.purpose = f"{name}: system BLAS, again"
            self._system.repeat([self._vendor], self._strided, self._rounds)
        measured = self._measured(self._ours, [self._current.config, *self._different], self._problem)
        ran = ((config, self._problem) for config, measurement in measured.items() if measurement.ok)
        self._run.anchor.visit_if_due(self._ours, ran)
        self._decision = self._decide()

    def screenings(self) -> list[Screening]:
        """What `measure` will ask for first, unless a search decides it: the current library and every combination."""
        if self._searched:
            return []
        cells = [(config, self._problem) for config in dict.fromkeys((self._current.config, *self._different))]
        return [Screening(self._ours, [cells])]

    def tuned(self) -> TunedTransposition:
        """The results so far: a row for every solution to try, and the winner if it is decided."""
        rows = [
            *self._rows(RowKind.SYSTEM, self._system, [self._vendor], self._strided),
            *self._rows(RowKind.CURRENT, self._ours, [self._current.config], self._problem, self._current.note),
            *self._rows(RowKind.CANDIDATE, self._ours, self._listed, self._problem),
        ]
        winner = None
        if self._decision:
            solution = self._ours.oracle.solution(self._decision.winner)
            winner = next(row for row in reversed(rows) if row.solution == solution)
        return TunedTransposition(
            self.name,
            self._problem,
            self._ours.oracle.work(self._problem),
            tuple(rows),
            len(self._different),
            self._decision,
            winner,
            self._searched,
        )

    def _decide(self) -> ContestDecision | None:
        """The winner by the protocol's rule: a challenger must be faster than the current library beyond doubt."""
        measure, problem, current = self._ours, self._problem, self._current.config
        vendor = [self._vendor] if self._task.vendor else []
        candidates = list(dict.fromkeys((current, *self._legal, *vendor)))
        candidates = [config for config in candidates if _rejection(measure, config, problem) is None]
        measured = self._measured(measure, candidates, problem)
        times = {config: m.estimate for config, m in measured.items() if m.ok and m.estimate}
        # If the current library is clearly slower than the best, it has lost, and does not change the finalists.
        reach = min((time.high for time in times.values()), default=0.0)
        incumbent = current if current in times and times[current].low <= reach else None
        by_problem = {config: {problem: time} for config, time in times.items()}
        contest = Contest(candidates, [problem], by_problem, Objective.GEOMEAN, measure.oracle.work, incumbent)
        measure.purpose = f"finalists of {problem.type.name}"
        return choose(contest, measure.confirm)

    def _screen(
        self, measure: RecordedMeasure, purpose: str, configs: Sequence[Configuration], problem: Problem
    ) -> None:
        measure.purpose = purpose
        legal = [config for config in configs if _rejection(measure, config, problem) is None]
        measure.screen([legal], [problem], racing=False)

    def _rows(
        self,
        kind: RowKind,
        measure: RecordedMeasure,
        configs: Sequence[Configuration],
        problem: Problem,
        note: str = "",
    ) -> Iterator[SolutionRow]:
        rejections = {config: _rejection(measure, config, problem) for config in configs}
        legal = [config for config, rejection in rejections.items() if rejection is None]
        measured = self._measured(measure, legal, problem)
        for config in configs:
            solution, toolchain = measure.oracle.solution(config), measure.toolchain(config)
            yield SolutionRow(kind, solution, toolchain, measured.get(config), rejections[config], note)

    def _measured(
        self, measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem
    ) -> Mapping[Configuration, Measurement]:
        """The measurements of the legal configurations, with the samples of all rounds."""
        legal = [config for config in configs if _rejection(measure, config, problem) is None]
        measurements = measure.over_rounds([(config, problem) for config in legal], self._rounds)
        return {config: measurement for (config, _), measurement in measurements.items()}


def blas_target(target: Target) -> Target:
    """The target through which the vendor's BLAS is called: on an NVIDIA GPU cuBLAS through CUDA, even if the kernels
    run through OpenCL."""
    if target.api == "CUDA" or not target.architecture.startswith("sm_"):
        return target
    cuda_targets = (found.target for found in discover("CUDA:", check=False) if found.target and found.usable)
    return next((cuda for cuda in cuda_targets if cuda.name == target.name), target)


def _rejection(measure: RecordedMeasure, config: Configuration, problem: Problem) -> Rejection | None:
    """The first reason why a configuration is illegal for a problem, else None."""
    oracle = measure.oracle
    return next(iter(oracle.rejections(config) or oracle.rejections_for(config, problem)), None)
