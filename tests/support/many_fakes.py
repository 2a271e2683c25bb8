"""A bench of several devices without processes: what a cell takes follows from its key and from the device's speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from golden_bench import measured
from tunesmith.bench import Batch, Job, Policy
from tunesmith.bench.statistics import median_interval
from tunesmith.records import Measurement, Outcome, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.many_devices import Admission, BenchFactory, Confirmation, DeviceShare, ManyDevices


def slower(measurement: Measurement, factor: float) -> Measurement:
    samples = [seconds * factor for seconds in measurement.samples]
    return replace(measurement, samples=tuple(samples), estimate=median_interval(samples))


@dataclass
class FakeManyDevices(ManyDevices):
    """Devices by name, each with the factor by which it is slow; None is a device on which nothing runs.

    `asked` has the confirmations of each `interleave_many`, `alone` the calls of `interleave`.
    """

    slow: Mapping[str, float | None]
    spread: float = 0.5
    left_out: dict[str, str] = field(default_factory=dict)
    asked: list[Sequence[Confirmation]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    alone: int = 0
    admission: tuple[Job, Admission] | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(name for name in self.slow if name not in self.left_out)

    def on(self, device: str, job: Job) -> Measurement:
        factor = self.slow[device]
        if factor is None:
            return Measurement(Outcome.TIMEOUT, "timeout", device=device)
        return replace(slower(measured(job.key, job.problem, self.spread), factor), device=device)

    def run(self, batch: Batch) -> Iterator[tuple[Job, Measurement]]:
        self.batches.append(batch)
        jobs = dict.fromkeys(job for race in batch.races for job in race.jobs)
        homes = {
            problem: self.devices[index % len(self.devices)]
            for index, problem in enumerate(dict.fromkeys(job.problem for job in jobs))
        }
        for job in jobs:
            yield job, self.on(homes[job.problem], job)

    def interleave(self, jobs: Sequence[Job], until_clear: bool = False) -> list[Measurement]:
        self.alone += 1
        return [self.on(self.devices[0], job) for job in jobs]

    def interleave_many(self, asked: Sequence[Confirmation]) -> Iterator[tuple[int, list[Measurement]]]:
        self.asked.append(asked)
        for index in reversed(range(len(asked))):
            yield index, [self.on(self.devices[index % len(self.devices)], job) for job in asked[index].jobs]

    def everywhere(self, job: Job) -> Iterator[Measurement]:
        for device in self.devices:
            yield self.on(device, job)

    def leave_out(self, device: str, why: str) -> None:
        self.left_out[device] = why

    def admit_by(self, job: Job, admission: Admission) -> None:
        self.admission = job, admission

    def shares(self) -> tuple[DeviceShare, ...]:
        return tuple(DeviceShare(name, 0.5, 1, left_out=self.left_out.get(name, "")) for name in self.slow)

    def close(self) -> None:
        """There is no process."""

    def __hash__(self) -> int:
        return id(self)


def factory(bench: ManyDevices) -> BenchFactory:
    """A factory that always gives this bench."""

    def make(target: Target, policy: Policy, cache: Path, observe: events.Observer) -> ManyDevices:
        return bench

    return make
