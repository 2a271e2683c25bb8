"""Verifies and times candidates on a device. Runs inside a worker process, which owns the device."""

from __future__ import annotations

import itertools
import math
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from typing import TypeVar

import numpy as np

from tunesmith.devices import Buffer, Device, LaunchError, Prepared, Program
from tunesmith.problems import OPERATIONS
from tunesmith.records import Cost, Measurement, Operand, Outcome, Problem, UserError, error_detail

from .injected_faults import pass_point
from .job import Policy, launch_outcome
from .machine_failures import MACHINE_FAILED
from .operand_sets import OperandSets, OperandSetsCache
from .processes.messages import Candidate, Done, InterleaveRequest, MeasureRequest, StageEntered
from .timing import Sampler, Timed, interleave, time_plan
from .verification.cases import Cases
from .verification.poison import itemsize
from .verification.run_inspection import Defect
from .verification.verify import FirstLaunch, Verifier

_SHORTEST_SAMPLE = {"CPU": 20e-6, "GPU": 50e-6}
"""Seconds by kind of device: some hundred times the resolution of its events."""
_MOST_EXECUTIONS = 256
_KEPT_PROGRAMS = 512
"""Candidates come problem by problem, so the same programs are used again. A loaded program takes some 100 KB."""
OUT_OF_MEMORY = "out of memory"

Result = TypeVar("Result")
OperandSet = Mapping[str, Buffer]


class DeviceRunner:
    """One device, with the programs, references and operands that it keeps for the next candidates."""

    def __init__(self, device: Device, policy: Policy, report: Callable[[StageEntered], None]) -> None:
        self._device, self._policy, self._report = device, policy, report
        self._load = lru_cache(_KEPT_PROGRAMS)(device.load)
        self._samplers, self._binding = 0, 0.0
        self._cases = Cases(policy.seed)
        self._operand_sets = OperandSetsCache(device, policy.cold)
        self._verifier = Verifier(device)

    def prepare(self) -> None:
        """Do what every verification needs. A worker has time for it while the first candidates are compiled."""
        self._verifier.prepare()

    def prepare_problems(self, problems: Sequence[Problem]) -> None:
        """Bring what verifying these problems needs to the device. What fails fails again when a candidate needs it,
        and is that candidate's result."""
        with suppress(Exception):
            for problem in problems:
                self._report(StageEntered("preparing"))
                self._verifier.hold(self._cases.get(problem))

    def measure(self, request: MeasureRequest) -> Done:
        """Verify one candidate and time it. The measurement says what went wrong, if anything."""
        record = _CandidateRecord(is_timed=request.times)
        with _recording(lambda: record), ExitStack() as held:
            if self._verified(request.candidate, 0, record) and request.times:
                self._cases.ahead(request.ahead)
                with record.spending("timing"):
                    sampler = held.enter_context(self._sampler(request.candidate))
                    self._report(StageEntered("timing"))
                    pass_point("timing")
                    limits = request.race_above, time.perf_counter, request.rival
                    record.timed = time_plan(sampler, self._policy, *limits)
        return Done((record.measurement(),), 0 if record.poisoned else None)

    def interleave(self, request: InterleaveRequest) -> Done:
        """Verify candidates of one problem and time them in blocks. When a candidate fails, the others start again."""
        records = [_CandidateRecord() for _ in request.candidates]
        samplers: dict[int, Sampler] = {}
        with ExitStack() as held:
            for index, candidate in enumerate(request.candidates):
                with _recording(partial(records.__getitem__, index)):
                    if self._verified(candidate, index, records[index]):
                        samplers[index] = held.enter_context(self._sampler(candidate))
            while samplers and not any(record.poisoned for record in records):
                failed = self._in_blocks(samplers, records, request.until_clear)
                if failed is None:
                    break
                del samplers[failed]
        poisoned = next((index for index, record in enumerate(records) if record.poisoned), None)
        return Done(tuple(record.measurement() for record in records), poisoned)

    def _in_blocks(
        self, samplers: dict[int, Sampler], records: Sequence[_CandidateRecord], until_clear: bool
    ) -> int | None:
        """Fill the records with aligned samples; or return the index of the candidate that failed."""
        indices, current = list(samplers), 0

        def enter(position: int) -> None:
            nonlocal current
            current = indices[position]
            self._report(StageEntered("timing", current))
            pass_point("timing")

        began, blocks = time.perf_counter(), None
        with _recording(lambda: records[current]):
            blocks = interleave(list(samplers.values()), self._policy, enter, until_clear, self._clock)
        if blocks is None:
            return current
        for index, samples in zip(indices, blocks, strict=True):
            records[index].timed = Timed(samples)
            records[index].spent["timing"] += (time.perf_counter() - began) / len(indices)
        return None

    def _verified(self, candidate: Candidate, index: int, record: _CandidateRecord) -> bool:
        if not candidate.verify:
            return True
        with record.spending("verify"):
            for problem, plan in candidate.plans.checks:
                self._report(StageEntered("preparing", index))
                case = self._cases.get(problem)
                self._with_room(partial(self._verifier.hold, case))
                self._report(StageEntered("verifying", index))
                pass_point("verifying")
                programs, first = self._loaded(candidate), self._first_launch(candidate, problem)
                verdict = self._with_room(partial(self._verifier.judge, programs, plan, case, first))
                record.wrong = verdict.wrong
                if record.wrong:
                    return False
                if problem == candidate.problem:
                    record.error = verdict.error
        return True

    def _first_launch(self, candidate: Candidate, problem: Problem) -> FirstLaunch | None:
        """The launch for this problem with whose result the candidate's must agree."""
        if candidate.first is None:
            return None
        return self._loaded(candidate.first), dict(candidate.first.plans.checks)[problem]

    def _loaded(self, candidate: Candidate) -> list[Program]:
        return self._with_room(lambda: list(map(self._load, candidate.binaries)))

    def _with_room(self, work: Callable[[], Result]) -> Result:
        """Do the work. If memory is short, free what is kept for the next candidates and try again. Operands stay while
        candidates are timed with them."""
        try:
            return work()
        except LaunchError as error:
            if error.reason != OUT_OF_MEMORY:
                raise
        if not self._samplers:
            self._operand_sets.clear()
        self._verifier.clear()
        return work()

    @contextmanager
    def _sampler(self, candidate: Candidate) -> Iterator[Sampler]:
        device, plan, size = self._device, candidate.plans.timed, candidate.plans.timed.workspace_bytes
        programs = self._loaded(candidate)
        # Before the operand sets, which give way if there is no room for it.
        workspace = self._with_room(lambda: device.allocate(size)) if size else None

        def bind(operands: OperandSet) -> Prepared:
            began = time.perf_counter()
            prepared = device.prepare(plan, programs, operands, workspace)
            self._binding += time.perf_counter() - began
            return prepared

        try:
            operand_sets = self._with_room(partial(self._timing_operands, candidate.problem))
            if plan.preparation.steps:
                device.prepare(plan.preparation, programs, operand_sets.sets[0], workspace).enqueue()
            self._samplers += 1
            try:
                yield Rotation(device, operand_sets.sets, bind)
            finally:
                self._samplers -= 1
        finally:
            if workspace is not None:
                device.release(workspace)

    def _clock(self) -> float:
        """Seconds without those in which plans were bound to sets, which is done once for each set."""
        return time.perf_counter() - self._binding

    def _timing_operands(self, problem: Problem) -> OperandSets:
        """Operands to time with. They are copies of the verified operands, if those are on the device."""
        operation = OPERATIONS[problem.type.operation]
        operands = operation.operands(problem)
        case = self._cases.kept(problem)
        verified = self._verifier.inputs(case) if case else {}

        def put(operand: Operand, buffer: Buffer) -> None:
            if operand.name in verified:
                size = operand.storage_elements * itemsize(operand.dtype)
                self._device.copy(verified[operand.name], buffer, size)
            else:
                content = self._cases.inputs(problem)[operand.name]
                self._device.write(buffer, np.ascontiguousarray(content).view(np.uint8))

        read = (operand for operand in operands if operand.role != "out")
        puts = {operand.name: partial(put, operand) for operand in read}
        return self._operand_sets.get(problem, operands, operation.bytes(problem), puts)


class Rotation:
    """Takes samples of a plan: each sample executes it on set after set, until the sample is long enough to time.

    `prepare` binds the plan to a set, which is done before the set's first use: few candidates use all sets.
    """

    def __init__(self, device: Device, sets: Sequence[OperandSet], prepare: Callable[[OperandSet], Prepared]) -> None:
        self._device, self._prepare = device, lru_cache(None)(lambda number: prepare(sets[number]))
        self._numbers = itertools.cycle(range(len(sets)))
        self._shortest = _SHORTEST_SAMPLE[device.target.kind]
        self._executions = 1

    def __call__(self) -> float:
        total = self._device.time([self._prepare(number) for number in islice(self._numbers, self._executions)])
        each = max(total / self._executions, 1e-9)
        if total < self._shortest:
            self._executions = min(_MOST_EXECUTIONS, math.ceil(self._shortest / each))
        return each


@dataclass
class _CandidateRecord:
    """What happened to one candidate so far. Without `is_timed` it is verified only."""

    is_timed: bool = True
    started: float = field(default_factory=time.time)
    spent: dict[str, float] = field(default_factory=lambda: {"verify": 0.0, "timing": 0.0})
    wrong: Defect | None = None
    error: float | None = None
    failure: tuple[str, str] | None = None
    poisoned: bool = False
    timed: Timed | None = None

    @contextmanager
    def spending(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[stage] += time.perf_counter() - began

    def measurement(self) -> Measurement:
        cost = Cost(**self.spent)
        if self.failure:
            return Measurement(launch_outcome(self.failure[0]), *self.failure, cost=cost, started=self.started)
        if self.wrong:
            wrong = self.wrong
            return Measurement(Outcome.WRONG_RESULT, wrong.reason, wrong.detail, cost=cost, started=self.started)
        if not self.is_timed:
            return Measurement(Outcome.OK, "", error_detail(self.error), cost=cost, started=self.started)
        if self.timed is None:
            return Measurement(Outcome.LAUNCH_ERROR, "not run", "another candidate broke the device", cost=cost)
        timed, detail = self.timed, error_detail(self.error)
        return Measurement(
            Outcome.OK, "", detail, timed.samples, timed.estimate, timed.raced, cost=cost, started=self.started
        )


@contextmanager
def _recording(record: Callable[[], _CandidateRecord]) -> Iterator[None]:
    """Turn every exception that is raised inside into a failure in a record, except UserError."""
    try:
        yield
    except UserError:
        raise
    except LaunchError as error:
        record().failure, record().poisoned = (error.reason, error.detail), error.poisoned
    except MemoryError as error:
        record().failure = (OUT_OF_MEMORY, f"on the host: {error}")
    except OSError as error:
        record().failure = (MACHINE_FAILED, f"{type(error).__name__}: {error}")
    except Exception:
        record().failure = ("unexpected exception", traceback.format_exc(limit=-3).strip())
