"""The test stand inside a worker: verifies and times candidates on a device that it owns."""

from __future__ import annotations

import itertools
import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from tunesmith.devices import Buffer, Device, LaunchError, Prepared
from tunesmith.problems import OPERATIONS
from tunesmith.records import Cost, Measurement, Operand, Outcome, Problem, UserError, error_detail

from .injected_faults import reached
from .job import Policy, launch_outcome
from .machine_failures import MACHINE_FAILED
from .operand_sets import OperandSets, OperandSetsCache
from .processes.messages import At, Candidate, Done, InterleaveRequest, MeasureRequest
from .timing import Take, Timed, interleave, time_plan
from .verification.cases import Cases
from .verification.poison import itemsize
from .verification.traces import Wrong
from .verification.verify import Verifier

_SHORTEST_SAMPLE = {"CPU": 20e-6, "GPU": 50e-6}
"""Seconds: some hundred times the resolution of the events of the two kinds."""
_MOST_EXECUTIONS = 256
_KEPT_PROGRAMS = 512
"""Candidates come problem by problem, so the same programs come round again; a loaded one takes some 100 KB."""
OUT_OF_MEMORY = "out of memory"

Result = TypeVar("Result")


class DeviceRunner:
    """One device with what is kept from candidate to candidate: programs, references, operands."""

    def __init__(self, device: Device, policy: Policy, tell: Callable[[At], None]) -> None:
        self._device, self._policy, self._tell = device, policy, tell
        self._load = lru_cache(_KEPT_PROGRAMS)(device.load)
        self._cases = Cases(policy.seed)
        self._arenas = OperandSetsCache(device, policy.cold)
        self._verifier = Verifier(device)

    def measure(self, request: MeasureRequest) -> Done:
        """Verify one candidate and time it; whatever goes wrong is in the measurement."""
        ledger = _Ledger()
        with _recording(lambda: ledger), ExitStack() as held:
            if self._verified(request.candidate, 0, ledger):
                self._cases.ahead(request.ahead)
                with ledger.spending("timing"):
                    take = held.enter_context(self._taking(request.candidate))
                    self._tell(At("timing"))
                    reached("timing")
                    ledger.timed = time_plan(take, self._policy, request.race_above, time.perf_counter)
        return Done((ledger.measurement(),), 0 if ledger.poisoned else None)

    def interleave(self, request: InterleaveRequest) -> Done:
        """Verify candidates of one problem and time them in blocks; when one fails, the others start again."""
        ledgers = [_Ledger() for _ in request.candidates]
        takes: dict[int, Take] = {}
        with ExitStack() as held:
            for index, candidate in enumerate(request.candidates):
                with _recording(partial(ledgers.__getitem__, index)):
                    if self._verified(candidate, index, ledgers[index]):
                        takes[index] = held.enter_context(self._taking(candidate))
            while takes and not any(ledger.poisoned for ledger in ledgers):
                failed = self._in_blocks(takes, ledgers, request.until_clear)
                if failed is None:
                    break
                del takes[failed]
        poisoned = next((index for index, ledger in enumerate(ledgers) if ledger.poisoned), None)
        return Done(tuple(ledger.measurement() for ledger in ledgers), poisoned)

    def _in_blocks(self, takes: dict[int, Take], ledgers: Sequence[_Ledger], until_clear: bool) -> int | None:
        """Fill the ledgers with aligned samples, or answer which candidate failed."""
        indices, now = list(takes), 0

        def enter(position: int) -> None:
            nonlocal now
            now = indices[position]
            self._tell(At("timing", now))
            reached("timing")

        began, blocks = time.perf_counter(), None
        with _recording(lambda: ledgers[now]):
            among = [takes[index] for index in indices]
            blocks = interleave(among, self._policy, enter, until_clear)
        if blocks is None:
            return now
        for index, samples in zip(indices, blocks, strict=True):
            ledgers[index].timed = Timed(samples)
            ledgers[index].spent["timing"] += (time.perf_counter() - began) / len(indices)
        return None

    def _verified(self, candidate: Candidate, index: int, ledger: _Ledger) -> bool:
        if not candidate.verify:
            return True
        with ledger.spending("verify"):
            for problem, plan in candidate.bound.checks:
                self._tell(At("preparing", index))
                case = self._cases.get(problem)
                self._with_room(partial(self._verifier.hold, case))
                self._tell(At("verifying", index))
                reached("verifying")
                programs = list(map(self._load, candidate.binaries))
                verdict = self._with_room(partial(self._verifier.judge, programs, plan, case))
                ledger.wrong = verdict.wrong
                if ledger.wrong:
                    return False
                if problem == candidate.problem:
                    ledger.error = verdict.error
        return True

    def _with_room(self, work: Callable[[], Result]) -> Result:
        """Do it, again if memory is short: what is kept for the next candidates must not be the reason why."""
        try:
            return work()
        except LaunchError as error:
            if error.reason != OUT_OF_MEMORY:
                raise
        self._arenas.clear()
        self._verifier.clear()
        return work()

    @contextmanager
    def _taking(self, candidate: Candidate) -> Iterator[Take]:
        device, plan = self._device, candidate.bound.timed
        arena = self._with_room(partial(self._arena, candidate.problem))
        programs = list(map(self._load, candidate.binaries))
        workspace = device.allocate(plan.workspace_bytes) if plan.workspace_bytes else None
        try:
            if plan.preparation.steps:
                device.prepare(plan.preparation, programs, arena.sets[0], workspace).enqueue()
            prepared = [device.prepare(plan, programs, one, workspace) for one in arena.sets]
            yield Rotation(device, prepared)
        finally:
            if workspace is not None:
                device.release(workspace)

    def _arena(self, problem: Problem) -> OperandSets:
        """Operands to time with: copies of those that were verified with, where these lie on the device."""
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
        puts = {one.name: partial(put, one) for one in read}
        return self._arenas.get(problem, operands, operation.bytes(problem), puts)


class Rotation:
    """Takes one sample: the same plan on set after set, as many executions as make a sample long enough to time."""

    def __init__(self, device: Device, prepared: Sequence[Prepared]) -> None:
        self._device, self._sets = device, itertools.cycle(prepared)
        self._shortest = _SHORTEST_SAMPLE[device.target.kind]
        self._executions = 1

    def __call__(self) -> float:
        total = self._device.time([next(self._sets) for _ in range(self._executions)])
        each = max(total / self._executions, 1e-9)
        if total < self._shortest:
            self._executions = min(_MOST_EXECUTIONS, math.ceil(self._shortest / each))
        return each


@dataclass
class _Ledger:
    """What happened to one candidate, as it happens."""

    started: float = field(default_factory=time.time)
    spent: dict[str, float] = field(default_factory=lambda: {"verify": 0.0, "timing": 0.0})
    wrong: Wrong | None = None
    error: float | None = None
    failure: tuple[str, str] | None = None
    poisoned: bool = False
    timed: Timed | None = None

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[what] += time.perf_counter() - began

    def measurement(self) -> Measurement:
        cost = Cost(**self.spent)
        if self.failure:
            return Measurement(launch_outcome(self.failure[0]), *self.failure, cost=cost, started=self.started)
        if self.wrong:
            wrong = self.wrong
            return Measurement(Outcome.WRONG_RESULT, wrong.reason, wrong.detail, cost=cost, started=self.started)
        if self.timed is None:
            return Measurement(Outcome.LAUNCH_ERROR, "not run", "another candidate broke the device", cost=cost)
        timed, detail = self.timed, error_detail(self.error)
        return Measurement(
            Outcome.OK, "", detail, timed.samples, timed.estimate, timed.raced, cost=cost, started=self.started
        )


@contextmanager
def _recording(ledger: Callable[[], _Ledger]) -> Iterator[None]:
    """Turns whatever is raised inside into a failure in a ledger; only a mistake of the user's goes on."""
    try:
        yield
    except UserError:
        raise
    except LaunchError as error:
        ledger().failure, ledger().poisoned = (error.reason, error.detail), error.poisoned
    except MemoryError as error:
        ledger().failure = (OUT_OF_MEMORY, f"on the host: {error}")
    except OSError as error:
        ledger().failure = (MACHINE_FAILED, f"{type(error).__name__}: {error}")
    except Exception:
        ledger().failure = ("unexpected exception", traceback.format_exc(limit=-3).strip())
