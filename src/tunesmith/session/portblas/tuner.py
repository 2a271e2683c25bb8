"""One transposition after the other, each in the original's order: system BLAS, current library, every combination."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Bench, Drift, drift
from tunesmith.devices import discover
from tunesmith.kernels import KERNELS, LANGUAGE
from tunesmith.protocol import Cell, Contest, Decision, Objective, Table, choose
from tunesmith.records import Configuration, Estimate, Measurement, Problem, ProblemType, Rejection, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.measure import Ledger, OutOfBudgetError, RecordedMeasure
from tunesmith.session.frame.oracle import FamilyJudge
from tunesmith.session.tune.tuning import CACHE
from tunesmith.store import Store

from .current import current
from .guided import guided
from .rows import Kind, Row, Tuned
from .task import PortBlasTask

LONG_LIST = 500
"""Candidates from which a run with a budget is guided, asked or not."""

ROUNDS_MORE = {"CPU": 2, "GPU": 0}
"""How often everything is measured again, by the kind of device. A CPU shares its clock, caches and cores with whatever
else runs: two runs a minute apart put 16 % of the pairs of kernels that their intervals told apart into opposite orders
(256 squares on 2 cores of a virtual machine, 2026-11-21)."""

VENDOR = "VendorBlas"
_NOT_DECIDED = Table()


@dataclass
class PortBlasTuner:
    """`listed` are the list's candidates; `spent` says that the budget is, and that the rest is only looked up."""

    task: PortBlasTask
    target: Target
    listed: Sequence[Configuration]
    folder: Path
    store: Store
    bench: Bench
    ledger: Ledger
    observe: events.Observer
    deadline: float | None
    spent: bool = False
    anchor: tuple[RecordedMeasure, Cell] | None = None

    def tune(self, name: str) -> Tuned:
        """Everything that there is time for; what was measured before is found again."""
        problem = self.task.problem(self.task.kind(name))
        self.observe(events.GroupBegan(problem.type, 0))
        system = self._system(name)
        measure = self._measure(problem.type, self.target, self.bench)
        now = current(self.task, self.target, problem, self.folder)
        self._screen(measure, f"{name}: current library", [now.config], problem)
        legal = [config for config in self.listed if _refusal(measure, config, problem) is None]
        different = list({measure.key((config, problem)): config for config in reversed(legal)}.values())[::-1]
        searched = self._is_searched(len(different))
        if searched:
            measure.purpose = f"{name}: guided through {len(different)} kernels"
            self._while_there_is_time(lambda: guided(measure, different, problem))
        else:
            self._screen(measure, f"{name}: {len(different)} kernels", different, problem)
        if self._rounds:
            measure.purpose = f"{name}: what ran, again"
            among = dict.fromkeys((now.config, *different))
            self._while_there_is_time(lambda: measure.repeat(list(among), problem, self._rounds))
            system = self._system(name, again=True)
        if self.anchor is None and (ran := self._ran(measure, [now.config, *different], problem)):
            self.anchor = measure, (next(iter(ran)), problem)
        rows = [
            system,
            *self._rows(Kind.CURRENT, measure, [now.config], problem, now.note),
            *self._rows(Kind.CANDIDATE, measure, self.listed, problem),
        ]
        decision = self._decided(measure, problem, now.config, [*legal, *self._vendors(measure, problem)])
        winner = None
        if decision:
            solution = measure.judge.solution(decision.winner)
            winner = next(row for row in reversed(rows) if row.solution == solution)
        flops = measure.judge.work(problem)
        return Tuned(name, problem, flops, tuple(rows), len(different), decision, winner, searched)

    def drifted(self) -> Drift | None:
        """How the first kernel that ran does now, when anything new was measured: has the machine changed meanwhile?"""
        if self.anchor is None or self.spent or not self.ledger.measured:
            return None
        measure, cell = self.anchor
        first = measure.lookup([cell], racing=False)[cell].estimate
        now = measure.again(cell, f"anchor/{time.time_ns()}").estimate
        return drift(first, now) if first and now else None

    def _is_searched(self, kernels: int) -> bool:
        return self.task.guided or (self.deadline is not None and kernels > LONG_LIST)

    def _system(self, name: str, again: bool = False) -> Row:
        """The system BLAS on a strided batch, whatever the task's: it has no interleaved ones."""
        problem = self.task.problem(self.task.kind(name, interleaved=False))
        config = Configuration({LANGUAGE: KERNELS[VENDOR].language})
        target = blas_target(self.target)
        with self._bench_on(target) as bench:
            measure = self._measure(problem.type, target, bench)
            if again:
                measure.purpose = f"{name}: system BLAS, again"
                self._while_there_is_time(lambda: measure.repeat([config], problem, self._rounds))
            else:
                self._screen(measure, f"{name}: system BLAS", [config], problem)
        (row,) = self._rows(Kind.SYSTEM, measure, [config], problem)
        return row

    def _vendors(self, measure: RecordedMeasure, problem: Problem) -> list[Configuration]:
        """The system BLAS as a candidate, where it may be one."""
        config = Configuration({LANGUAGE: KERNELS[VENDOR].language})
        return [config] if self.task.vendor and _refusal(measure, config, problem) is None else []

    def _decided(
        self, measure: RecordedMeasure, problem: Problem, incumbent: Configuration, candidates: Sequence[Configuration]
    ) -> Decision | None:
        """By the protocol's rule: the current library yields only to what is faster beyond doubt."""
        among = list(dict.fromkeys((incumbent, *candidates)))
        among = [config for config in among if _refusal(measure, config, problem) is None]
        times = self._ran(measure, among, problem)
        # Beyond the best's reach it has lost, and the finalists are the same whatever the current library was.
        reach = min((time.high for time in times.values()), default=0.0)
        holds = incumbent in times and times[incumbent].low <= reach
        table = Table({(config, problem): time for config, time in times.items()})
        contest = Contest(among, [problem], table, Objective.GEOMEAN, measure.judge.work, incumbent if holds else None)
        measure.purpose = f"finalists of {problem.type.name}"
        try:
            return choose(contest, measure.confirm)
        except OutOfBudgetError:
            self.spent = True
            return choose(contest, lambda configs, problems: _NOT_DECIDED)

    def _screen(
        self, measure: RecordedMeasure, purpose: str, configs: Sequence[Configuration], problem: Problem
    ) -> None:
        measure.purpose = purpose
        legal = [config for config in configs if _refusal(measure, config, problem) is None]
        self._while_there_is_time(lambda: measure.screen([legal], [problem], racing=False))

    def _while_there_is_time(self, action: Callable[[], object]) -> None:
        if self.spent:
            return
        try:
            action()
        except OutOfBudgetError:
            self.spent = True

    @contextmanager
    def _bench_on(self, target: Target) -> Iterator[Bench]:
        """The run's own, or one of its own for another way to the same device."""
        if target == self.target:
            yield self.bench
            return
        with Bench(target, self.task.policy, self.folder / CACHE, self.observe) as bench:
            yield bench

    @property
    def _rounds(self) -> int:
        return ROUNDS_MORE.get(self.target.kind, 0)

    def _rows(
        self, kind: Kind, measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem, note: str = ""
    ) -> Iterator[Row]:
        refusals = {config: _refusal(measure, config, problem) for config in configs}
        known = self._known(measure, [config for config, refused in refusals.items() if refused is None], problem)
        for config in configs:
            solution, toolchain = measure.judge.solution(config), measure.toolchain(config)
            yield Row(kind, solution, toolchain, known.get(config), refusals[config], note)

    def _ran(
        self, measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem
    ) -> Mapping[Configuration, Estimate]:
        legal = [config for config in configs if _refusal(measure, config, problem) is None]
        known = self._known(measure, legal, problem)
        return {config: one.estimate for config, one in known.items() if one.ok and one.estimate}

    def _known(
        self, measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem
    ) -> Mapping[Configuration, Measurement]:
        found = measure.over_rounds([(config, problem) for config in configs], self._rounds)
        return {config: measurement for (config, _), measurement in found.items()}

    def _measure(self, kind: ProblemType, target: Target, bench: Bench) -> RecordedMeasure:
        judge = FamilyJudge(kind, target)
        return RecordedMeasure(judge, bench, self.store, self.task.policy, self.ledger, self.observe, self.deadline)


def blas_target(target: Target) -> Target:
    """Through what the vendor's BLAS is called on a device: cuBLAS by CUDA, also where kernels go by OpenCL."""
    if target.api == "CUDA" or not target.architecture.startswith("sm_"):
        return target
    found = (one.target for one in discover("CUDA:", check=False) if one.target and one.usable)
    return next((one for one in found if one.name == target.name), target)


def _refusal(measure: RecordedMeasure, config: Configuration, problem: Problem) -> Rejection | None:
    judge = measure.judge
    return next(iter(judge.rejections(config) or judge.rejections_for(config, problem)), None)
