"""`ClusterBench`: the bench of a run whose devices are workers of a Dask cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from tunesmith.bench import Batch, Compilation, Job, Policy, Race
from tunesmith.bench.timing import BLOCKS_SHARE
from tunesmith.problems import OPERATIONS
from tunesmith.records import Measurement, Module, Problem, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.many_devices import Admission, Confirmation, DeviceShare, ManyDevices

from .assignment import CellGroup, expected_seconds
from .connection import ClusterConnection
from .devices import WorkItem
from .dispatch import Dispatcher
from .programs import NO_PORTION
from .worker import compile_modules

CONFIRMATIONS = 4
"""The most confirmations of a portion. Each is some finalists in blocks, and takes as long as several first times."""


class ClusterBench(ManyDevices):
    """Measures on all devices of one kind at once. Results come as the devices send them.

    A run that ends early leaves nothing behind: devices stop after the measurement at hand.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        target: Target,
        policy: Policy,
        observe: events.Observer = events.nobody,
    ) -> None:
        self._connection, self._target, self._policy = connection, target, policy
        self._dispatcher = Dispatcher(connection, target, policy, observe)
        self._spent: dict[Problem, list[float]] = {}

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(self._dispatcher.fleet.working)

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Begin to compile what these jobs need. The devices are opened when they join."""
        self._dispatcher.prepare(jobs)

    def compile(self, modules: Sequence[Module]) -> Iterator[Compilation]:
        """Compile modules on the hosts that compile."""
        arguments = (tuple(modules), self._target, self._policy)
        yield from self._connection.submit(NO_PORTION, compile_modules, *arguments).result()

    def run(self, batch: Batch) -> Iterator[tuple[Job, Measurement]]:
        """Measure every job once; `Bench.run`. All jobs of a problem are measured on one device."""
        for results in self.run_together(batch):
            yield from results

    def run_together(self, batch: Batch) -> Iterator[list[tuple[Job, Measurement]]]:
        items: dict[str, WorkItem] = {}
        for number, race in enumerate(batch.races):
            for job in race.jobs:
                items.setdefault(job.key, WorkItem(job.key, job.problem, job, number))
        best = {(number, problem): high for number, r in enumerate(batch.races) for problem, high in r.rivals.items()}

        def portion(of: Sequence[WorkItem], ahead: tuple[Problem, ...]) -> Batch:
            by_race: dict[int, list[Job]] = {}
            for item in of:
                by_race.setdefault(item.race, []).extend(item.jobs)
            races = [
                Race(
                    tuple(jobs),
                    {job.problem: best[number, job.problem] for job in jobs if (number, job.problem) in best},
                )
                for number, jobs in by_race.items()
            ]
            return Batch(tuple(races), batch.racing, ahead)

        steps = {item.problem: batch.races[item.race].step for item in items.values()}
        for results in self._dispatcher.carry_out(self._groups(items.values()), portion, steps=steps):
            together: list[tuple[Job, Measurement]] = []
            for result in results:
                (measurement,) = result.measurements
                (job,) = result.item.jobs
                if measurement.estimate is not None and measurement.ok:
                    rival = result.item.race, job.problem
                    best[rival] = min(best.get(rival, math.inf), measurement.estimate.high)
                self._spent.setdefault(job.problem, []).append(measurement.cost.verify + measurement.cost.timing)
                together.append((job, measurement))
            yield together

    def interleave(self, jobs: Sequence[Job], until_clear: bool = False) -> list[Measurement]:
        """Measure jobs of one problem against each other, on the device that measured them before if it has time."""
        ((_, measured),) = self.interleave_many([Confirmation(tuple(jobs), until_clear)])
        return measured

    def interleave_many(self, asked: Sequence[Confirmation]) -> Iterator[tuple[int, list[Measurement]]]:
        if any(len({job.problem for job in confirmation.jobs}) != 1 for confirmation in asked):
            raise ValueError("only jobs of one problem can be interleaved")
        items = [WorkItem(str(index), each.jobs[0].problem, each) for index, each in enumerate(asked)]
        groups: dict[Problem, list[WorkItem]] = {}
        for item in items:
            groups.setdefault(item.problem, []).append(item)
        expected = self._expected(groups, BLOCKS_SHARE * self._policy.sampling_seconds)
        cells = [
            CellGroup(problem, own, expected[problem] * fmean(len(item.jobs) for item in own), _work(problem))
            for problem, own in groups.items()
        ]
        for results in self._dispatcher.carry_out(cells, _confirmations, most=CONFIRMATIONS):
            yield from ((int(result.item.name), list(result.measurements)) for result in results)

    def everywhere(self, job: Job) -> Iterator[Measurement]:
        yield from self._dispatcher.visit(job)

    def leave_out(self, device: str, why: str) -> None:
        if found := self._dispatcher.fleet.get(device):
            found.left_out = why

    def admit_by(self, job: Job, admission: Admission) -> None:
        self._dispatcher.admit_by(job, admission)

    def shares(self) -> tuple[DeviceShare, ...]:
        return self._dispatcher.fleet.shares()

    def close(self) -> None:
        """Let go of the devices. The connection stays."""

    def _groups(self, items: Iterable[WorkItem]) -> list[CellGroup[WorkItem]]:
        """The items by problem, with the seconds that an item is expected to take."""
        by_problem: dict[Problem, list[WorkItem]] = {}
        for item in items:
            by_problem.setdefault(item.problem, []).append(item)
        expected = self._expected(by_problem, self._policy.sampling_seconds + self._policy.warm_up_seconds)
        return [CellGroup(problem, own, expected[problem], _work(problem)) for problem, own in by_problem.items()]

    def _expected(self, problems: Iterable[Problem], usual: float) -> dict[Problem, float]:
        """Seconds that a measurement on each problem is expected to take."""
        known = {problem: (_work(problem), fmean(spent)) for problem, spent in self._spent.items()}
        return expected_seconds({problem: _work(problem) for problem in problems}, known, usual)


def _confirmations(items: Sequence[WorkItem], ahead: tuple[Problem, ...]) -> dict[str, Confirmation]:
    return {item.name: item.asked for item in items if isinstance(item.asked, Confirmation)}


def _work(problem: Problem) -> float:
    return OPERATIONS[problem.type.operation].work(problem)
