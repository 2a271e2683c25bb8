"""One transposition in the original's order: the system BLAS, the current library, every combination of the list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tunesmith.devices import discover
from tunesmith.kernels import KERNELS, LANGUAGE, VENDOR
from tunesmith.protocol import Contest, ContestDecision, Objective, choose
from tunesmith.records import Configuration, Measurement, Problem, Rejection, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.measure import ROUNDS_MORE, RecordedMeasure
from tunesmith.session.frame.run import Run

from .current import current
from .guided import guided
from .rows import RowKind, SolutionRow, Tuned
from .task import PortBlasTask

LONG_LIST = 500
"""Candidates from which a run with a budget is guided, asked or not."""


class Transposition:
    """Measures one transposition of a task, and says what came of it, whether it came to its end or not.

    The system BLAS works on a strided batch, whatever the task's: it has no interleaved ones.
    """

    def __init__(self, name: str, task: PortBlasTask, listed: Sequence[Configuration], run: Run) -> None:
        self.name, self._task, self._listed, self._run = name, task, listed, run
        self._problem = task.problem(task.kind(name))
        self._strided = task.problem(task.kind(name, interleaved=False))
        target = run.outcome.target
        self._ours = run.measure(self._problem.type)
        self._system = run.measure(self._strided.type, blas_target(target))
        self._current = current(task, self._ours.oracle, self._problem, run.outcome.folder, run.complain)
        self._legal = [config for config in listed if _refusal(self._ours, config, self._problem) is None]
        by_key = {self._ours.key((config, self._problem)): config for config in reversed(self._legal)}
        self._different = list(by_key.values())[::-1]
        self._rounds = ROUNDS_MORE.get(target.kind, 0)
        self._searched = task.guided or (run.deadline is not None and len(self._different) > LONG_LIST)
        self._vendor = Configuration({LANGUAGE: KERNELS[VENDOR].language})
        self._decision: ContestDecision | None = None

    def measure(self) -> None:
        """Everything once, on a CPU in more rounds, then the finalists side by side. Raises OutOfBudgetError."""
        name, kernels = self.name, len(self._different)
        self._run.observe(events.GroupBegan(self._problem.type, 0))
        self._screen(self._system, f"{name}: system BLAS", [self._vendor], self._strided)
        self._screen(self._ours, f"{name}: current library", [self._current.config], self._problem)
        if self._searched:
            self._ours.purpose = f"{name}: guided through {kernels} kernels"
            guided(self._run, self._ours, self._different, self._problem)
        else:
            self._screen(self._ours, f"{name}: {kernels} kernels", self._different, self._problem)
        if self._rounds:
            self._ours.purpose = f"{name}: what ran, again"
            among = dict.fromkeys((self._current.config, *self._different))
            self._ours.repeat(list(among), self._problem, self._rounds)
            self._system.purpose = f"{name}: system BLAS, again"
            self._system.repeat([self._vendor], self._strided, self._rounds)
        ran = self._known(self._ours, [self._current.config, *self._different], self._problem)
        self._run.anchor.visit_if_due(self._ours, ((config, self._problem) for config, made in ran.items() if made.ok))
        self._decision = self._decided()

    def tuned(self) -> Tuned:
        """A row for everything that was to be tried, with what is known of it."""
        rows = [
            *self._rows(RowKind.SYSTEM, self._system, [self._vendor], self._strided),
            *self._rows(RowKind.CURRENT, self._ours, [self._current.config], self._problem, self._current.note),
            *self._rows(RowKind.CANDIDATE, self._ours, self._listed, self._problem),
        ]
        winner = None
        if self._decision:
            solution = self._ours.oracle.solution(self._decision.winner)
            winner = next(row for row in reversed(rows) if row.solution == solution)
        return Tuned(
            self.name,
            self._problem,
            self._ours.oracle.work(self._problem),
            tuple(rows),
            len(self._different),
            self._decision,
            winner,
            self._searched,
        )

    def _decided(self) -> ContestDecision | None:
        """By the protocol's rule: the current library yields only to what is faster beyond doubt."""
        measure, problem, incumbent = self._ours, self._problem, self._current.config
        vendor = [self._vendor] if self._task.vendor else []
        among = list(dict.fromkeys((incumbent, *self._legal, *vendor)))
        among = [config for config in among if _refusal(measure, config, problem) is None]
        known = self._known(measure, among, problem)
        times = {config: made.estimate for config, made in known.items() if made.ok and made.estimate}
        # Beyond the best's reach it has lost, and the finalists are the same whatever the current library was.
        reach = min((time.high for time in times.values()), default=0.0)
        holds = incumbent in times and times[incumbent].low <= reach
        told = {config: {problem: time} for config, time in times.items()}
        contest = Contest(among, [problem], told, Objective.GEOMEAN, measure.oracle.work, incumbent if holds else None)
        measure.purpose = f"finalists of {problem.type.name}"
        return choose(contest, measure.confirm)

    def _screen(
        self, measure: RecordedMeasure, purpose: str, configs: Sequence[Configuration], problem: Problem
    ) -> None:
        measure.purpose = purpose
        legal = [config for config in configs if _refusal(measure, config, problem) is None]
        measure.screen([legal], [problem], racing=False)

    def _rows(
        self,
        kind: RowKind,
        measure: RecordedMeasure,
        configs: Sequence[Configuration],
        problem: Problem,
        note: str = "",
    ) -> Iterator[SolutionRow]:
        refusals = {config: _refusal(measure, config, problem) for config in configs}
        known = self._known(measure, [config for config, refused in refusals.items() if refused is None], problem)
        for config in configs:
            solution, toolchain = measure.oracle.solution(config), measure.toolchain(config)
            yield SolutionRow(kind, solution, toolchain, known.get(config), refusals[config], note)

    def _known(
        self, measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem
    ) -> Mapping[Configuration, Measurement]:
        legal = [config for config in configs if _refusal(measure, config, problem) is None]
        found = measure.over_rounds([(config, problem) for config in legal], self._rounds)
        return {config: measurement for (config, _), measurement in found.items()}


def blas_target(target: Target) -> Target:
    """Through what the vendor's BLAS is called on a device: cuBLAS by CUDA, also where kernels go by OpenCL."""
    if target.api == "CUDA" or not target.architecture.startswith("sm_"):
        return target
    found = (one.target for one in discover("CUDA:", check=False) if one.target and one.usable)
    return next((one for one in found if one.name == target.name), target)


def _refusal(measure: RecordedMeasure, config: Configuration, problem: Problem) -> Rejection | None:
    oracle = measure.oracle
    return next(iter(oracle.rejections(config) or oracle.rejections_for(config, problem)), None)
