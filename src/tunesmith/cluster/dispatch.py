"""Keeps the devices of a cluster at work: sends portions, takes results, and gives a lost device's work to others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tunesmith
from tunesmith.bench import Batch, Job, Policy, Race, WorkerLost
from tunesmith.bench.machine_failures import ended_from_outside
from tunesmith.records import Measurement, Outcome, Problem, Target, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame.many_devices import Admission, Confirmation

from .assignment import MOST, Assignment, CellGroup
from .connection import ClusterConnection, Failed, Joined, Left, News, Received
from .devices import ClusterDevice, Fleet, Purpose, SentPortion, WorkItem, is_interchangeable
from .messages import MessageKind, Portion, Role, WorkerIdentity, compiler_versions
from .programs import NO_PORTION, ProgramTasks
from .wire import measurement_of
from .worker import measure_portion, open_device

FIRST = 4
"""The most items of a device's first portion in a step, so that it need not wait for many programs."""

LOSSES = 3
"""A job is not tried again in this run after devices, or their processes, were lost so many times while they worked on
it."""

LOST = "SIGKILL"
"""The reason of such a job. Its process was ended from outside, so this is no result, and the next run tries again."""

PATIENCE, WAIT_SECONDS = 3.0, 600.0
"""If no device works for so long, the command says that it waits; and then gives up."""

LOOK_SECONDS = 0.2

AT_ONCE = 64
"""The most news that are taken before devices get work again and results are handed on."""

Make = Callable[[Sequence[WorkItem], tuple[Problem, ...]], Batch | Mapping[str, Confirmation]]
"""Makes a portion's work from its items and the problems that the device begins next."""


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The measurements of an item: one for a job, one for each finalist of a confirmation. A job's `second` result says
    that it broke the worker for the next job."""

    item: WorkItem
    measurements: tuple[Measurement, ...]
    second: bool = False


class Dispatcher:
    """Carries out requests to the devices of one kind in a cluster, one request at a time."""

    def __init__(self, connection: ClusterConnection, target: Target, policy: Policy, observe: events.Observer) -> None:
        self._connection, self._target, self._policy, self._observe = connection, target, policy, observe
        self.fleet = Fleet(observe)
        self._programs = ProgramTasks(connection, target, policy)
        self._assignment: Assignment[WorkItem] | None = None
        self._homes: dict[Any, str] = {}
        self._begun: dict[Problem, str] = {}
        self._losses: dict[tuple[str, ...], int] = {}
        self._admission: tuple[Job, Admission] | None = None
        self._errors: list[UserError] = []
        self._refused: set[str] = set()
        self._idle_since: float | None = None
        self._take_members()

    def admit_by(self, job: Job, admission: Admission) -> None:
        self._admission = job, admission

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Begin to compile what these jobs need."""
        self._programs.begin(jobs)

    def carry_out(
        self,
        groups: Sequence[CellGroup[WorkItem]],
        make: Make,
        most: int = MOST,
        steps: Mapping[Problem, str] = {},
    ) -> Iterator[list[ItemResult]]:
        """Measure all items, each group on one device, and yield results as they come: those that came together.

        A portion has at most `most` items. `steps` names the step of a problem; a group that an earlier request of the
        same step began stays on its device.
        """
        begun = {problem for problem, step in steps.items() if step and self._begun.get(problem) == step}
        self._assignment = Assignment.of(groups, self._homes, begun)
        self._begun |= steps
        pending, fresh = self._assignment.left, {device.name for device in self.fleet}
        try:
            while pending:
                self._wait_for_devices()
                for device in self.fleet:
                    while device.has_room:
                        limit = min(most, FIRST) if device.name in fresh else most
                        fresh.discard(device.name)
                        items = self._assignment.portion_for(device.name, self.fleet.working, limit, bool(device.held))
                        if not items:
                            break
                        expected = self._assignment.next_for(device.name, self.fleet.working)
                        self._send(device, items, make, Purpose.WORK, (expected.problem,) if expected else ())
                if results := list(self._next_results()):
                    pending -= sum(not result.second for result in results)
                    yield results
        finally:
            self._assignment = None
            self._drop(Purpose.WORK)

    def visit(self, job: Job) -> Iterator[Measurement]:
        """Measure one job on every device that works; again where a process was killed meanwhile, `LOSSES` times in
        all."""
        unvisited = set(self.fleet.working)
        for _ in range(LOSSES):
            for device in self.fleet:
                if device.works and device.name in unvisited:
                    self._send(device, [_item(job)], _only_batch, Purpose.VISIT)
            try:
                while any(portion.purpose is Purpose.VISIT for device in self.fleet for portion in device.held):
                    for result in self._next_results():
                        unvisited -= {measurement.device for measurement in result.measurements}
                        yield from result.measurements
            finally:
                self._drop(Purpose.VISIT)
        for name in unvisited & set(self.fleet.working):
            yield Measurement(Outcome.CRASH, LOST, f"at a visit, {LOSSES} times", started=time.time(), device=name)

    def _next_results(self) -> Iterator[ItemResult]:
        """Wait for news, take all that have come by then, and yield what they say about items."""
        yield from self._results(self._connection.next_news(LOOK_SECONDS))
        for news in islice(self._connection.arrived_news(), AT_ONCE):
            yield from self._results(news)
        self.fleet.show()
        if self._programs.are_lost:
            # What waits for a compile task would wait for ever.
            for device in self.fleet:
                for portion in [portion for portion in device.held if portion.needs_programs and not portion.began]:
                    self._take_back(device, portion)

    def _results(self, news: News | None) -> Iterator[ItemResult]:
        match news:
            case Received(facts):
                if found := self.fleet.holder(int(facts["portion"])):
                    yield from self._heard(*found, facts)
            case Joined():
                self._take_members()
            case Left(address):
                if device := self.fleet.at(address):
                    yield from self._lost(device)
                self._take_members()
            case Failed(number, why):
                if found := self.fleet.holder(number):
                    yield from self._failed(*found, why)

    def _heard(self, device: ClusterDevice, portion: SentPortion, facts: Mapping[str, Any]) -> Iterator[ItemResult]:
        match MessageKind(facts["kind"]):
            case MessageKind.BEGAN:
                self.fleet.begin(portion)
            case MessageKind.MEASURED:
                yield from self._result(device, portion, str(facts["key"]), [facts["result"]])
            case MessageKind.INTERLEAVED:
                yield from self._result(device, portion, str(facts["key"]), facts["results"])
            case MessageKind.LOST:
                self._observe(WorkerLost(facts["pid"], facts["cause"], facts["stage"], facts["key"]))
            case MessageKind.FAILED:
                error = UserError(f"{device.name}: {facts['location']}", facts["what"], facts["remedy"])
                self._errors.append(error)
                device.left_out = str(error)
                self._observe(events.Message(f"{device.name} is left out: {error}"))
                yield from self._lost(device)
            case MessageKind.ENDED:
                device.busy += float(facts["seconds"])
                portion.ended = True
                self._take_back(device, portion)

    def _result(
        self, device: ClusterDevice, portion: SentPortion, name: str, plain: Sequence[Any]
    ) -> Iterator[ItemResult]:
        item, measurements = portion.items[name], tuple(measurement_of(each, device.name) for each in plain)
        second = name not in portion.waiting
        if not second and any(map(_was_killed, measurements)) and self._is_repeated(portion.purpose, item):
            # It still waits, behind those that the device goes on with, and is sent again after the portion's end.
            portion.waiting[name] = portion.waiting.pop(name)
            return
        portion.waiting.pop(name, None)
        device.measured += len(measurements)
        device.problem = item.problem
        if portion.purpose is not Purpose.ADMISSION:
            yield ItemResult(item, measurements, second)
        elif self._admission is not None:
            _, admission = self._admission
            device.admitted = admission(device.name, measurements[0])

    def _send(
        self,
        device: ClusterDevice,
        items: Sequence[WorkItem],
        make: Make,
        purpose: Purpose,
        ahead: tuple[Problem, ...] = (),
    ) -> None:
        number = next(self._connection.numbers)
        tasks, new = self._programs.tasks_for(job for item in items for job in item.jobs)
        portion = Portion(number, self._connection.topic, self._policy, make(items, ahead), new)
        key = f"{self._connection.topic}-{number}"
        future = self._connection.submit(
            number, measure_portion, portion, tasks, workers=[device.address], allow_other_workers=False, key=key
        )
        named = {item.name: item for item in items}
        device.held.append(SentPortion(number, named, future, purpose, bool(tasks)))

    def _lost(self, device: ClusterDevice) -> Iterator[ItemResult]:
        """Give what a device held to others. A job is given up if devices are lost at it again and again."""
        device.busy, device.address = device.busy_seconds(time.monotonic()), ""
        if self._assignment is not None:
            self._assignment.lose(device.name)
        held = list(device.held)
        if held:
            self._observe(events.Message(f"{device.name} is gone; what it held goes to others"))
        for portion in held:
            if portion.began is not None:
                yield from self._suspected(device, portion, list(portion.waiting)[:1], "a device was lost at it")
        for portion in reversed(held):
            self._take_back(device, portion)

    def _failed(self, device: ClusterDevice, portion: SentPortion, why: str) -> Iterator[ItemResult]:
        """Dask could not carry out a portion, for example because no host compiles: then the devices compile."""
        self._observe(events.Message(f"a portion for {device.name} failed ({why}); it is sent again"))
        self._programs.give_up(job for item in portion.items.values() for job in item.jobs)
        yield from self._suspected(device, portion, list(portion.waiting), why)
        self._take_back(device, portion)

    def _suspected(
        self, device: ClusterDevice, portion: SentPortion, names: Sequence[str], why: str
    ) -> Iterator[ItemResult]:
        """Count a loss for items, and give those up that were lost `LOSSES` times."""
        for name in names if portion.purpose is Purpose.WORK else ():
            if self._lose(portion.items[name]) >= LOSSES:
                item = portion.waiting.pop(name)
                detail = f"{why}, {LOSSES} times"
                lost = Measurement(Outcome.CRASH, LOST, detail, started=time.time(), device=device.name)
                yield ItemResult(item, (lost,) * len(item.jobs))

    def _is_repeated(self, purpose: Purpose, item: WorkItem) -> bool:
        """Whether an item is measured again after its process was killed. `visit` counts for itself."""
        return purpose is Purpose.VISIT or (purpose is Purpose.WORK and self._lose(item) < LOSSES)

    def _lose(self, item: WorkItem) -> int:
        """How often a device or its process was lost at these jobs, with this time."""
        jobs = tuple(job.key for job in item.jobs)
        self._losses[jobs] = self._losses.get(jobs, 0) + 1
        return self._losses[jobs]

    def _take_back(self, device: ClusterDevice, portion: SentPortion) -> None:
        """Take a portion from a device; its items without a result wait again. A visit is not repeated."""
        device.held.remove(portion)
        if not portion.ended:
            self._connection.cancel(portion.future)
        if self._assignment is None or portion.purpose is not Purpose.WORK:
            return
        by_problem: dict[Problem, list[WorkItem]] = {}
        for item in portion.waiting.values():
            by_problem.setdefault(item.problem, []).append(item)
        for problem, items in by_problem.items():
            self._assignment.give_back(problem, items)

    def _drop(self, purpose: Purpose) -> None:
        """Forget portions that nobody waits for any more: their request has ended early."""
        for device in self.fleet:
            for portion in [portion for portion in device.held if portion.purpose is purpose]:
                self._take_back(device, portion)

    def _take_members(self) -> None:
        """Take in the devices that have joined, and count the hosts that compile."""
        members = self._connection.members()
        self._programs.count(sum(member.role is Role.COMPILER for member in members.values()))
        for address, member in members.items():
            if member.target is None or not is_interchangeable(self._target, member.target):
                continue
            known = self.fleet.get(member.device)
            if known is not None and known.address == address:
                continue
            if why := self._refusal(known, member):
                if address not in self._refused:
                    self._refused.add(address)
                    self._observe(events.Message(f"a worker of {member.device} gets no work: {why}"))
                continue
            device = self.fleet.join(member.device, address)
            device.opening = self._connection.submit(
                NO_PORTION, open_device, self._policy, workers=[address], allow_other_workers=False
            )
            if self._admission is None or device.admitted:
                device.admitted = True
            else:
                job, _ = self._admission
                self._send(device, [_item(job)], _only_batch, Purpose.ADMISSION)

    def _refusal(self, known: ClusterDevice | None, member: WorkerIdentity) -> str:
        """Why a worker cannot work for this command; empty if it can."""
        if known is not None and known.address:
            return "another worker has that device"
        if known is not None and known.left_out:
            return known.left_out
        if member.version != tunesmith.__version__:
            return f"it has tunesmith {member.version}, this command is {tunesmith.__version__}"
        own = compiler_versions(self._target)
        for language, version in (member.toolchains or {}).items():
            if own.get(language, version) != version:
                return f"it compiles {language} by {version}, and keys of measurements here say {own[language]}"
        return ""

    def _wait_for_devices(self) -> None:
        """Raises UserError if no device works for long, or if each had an error."""
        if self.fleet.working:
            self._idle_since = None
            return
        if self._errors and all(device.left_out for device in self.fleet):
            raise self._errors[0]
        now = time.monotonic()
        before = now - LOOK_SECONDS - self._idle_since if self._idle_since is not None else 0.0
        self._idle_since = self._idle_since if self._idle_since is not None else now
        if now - self._idle_since > PATIENCE >= before:
            self._observe(events.Message("no device works now; the command waits for one to join"))
        if now - self._idle_since > WAIT_SECONDS:
            what = f"no device joined for {WAIT_SECONDS:g} s; everything measured until then is kept"
            raise UserError("cluster", what, "start `tunesmith worker --cluster ...`, then the same command goes on")


def _was_killed(measurement: Measurement) -> bool:
    """Whether a process of the device was ended from outside while it measured."""
    return measurement.outcome is Outcome.CRASH and ended_from_outside(measurement.reason)


def _item(job: Job) -> WorkItem:
    return WorkItem(job.key, job.problem, job)


def _only_batch(items: Sequence[WorkItem], ahead: tuple[Problem, ...]) -> Batch:
    return Batch((Race(tuple(job for item in items for job in item.jobs)),))
