"""Is it right? A plan runs on guarded, poisoned memory; what it leaves is compared with a reference."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tunesmith.devices import Buffer, Device, Program
from tunesmith.records import Plan

from .case import VerificationCase
from .device_programs import Checks
from .device_memory import DeviceMemory, fits, needed_bytes
from .host_memory import HostMemory
from .poison import POISONS
from .run_inspection import Traces, Wrong, never_written, relative_error

_LARGEST_SHARE = 0.25
"""Of the device's memory, for all cases that are kept there."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was wrong, or how far the outputs of a right result are from the reference."""

    wrong: Wrong | None
    error: float | None = None


class Verifier:
    """Verifies plans on one device, and keeps there what the next candidate of a problem needs."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._kept: OrderedDict[int, DeviceMemory] = OrderedDict()

    def judge(self, programs: Sequence[Program], plan: Plan, case: VerificationCase) -> Verdict:
        """Run a plan and look at every byte that it could have touched; raises LaunchError.

        It runs once for each poison in the outputs, so that a kernel that reads what it should only write is found out.

        Inputs and what surrounds them must be as before; so must the elements between an output's rows; every element
        of an output must be written, and those that the reference covers must be within its bound. NaN is never right.
        """
        with self.hold(case) or HostMemory(self._device, case) as memory:
            return _judged(memory, programs, plan, case)

    def hold(self, case: VerificationCase) -> DeviceMemory | None:
        """Bring a case to the device; None where its own programs cannot be had, or do not understand the case. Raises
        LaunchError."""
        if self._checks is None or not fits(case):
            return None
        if id(case) not in self._kept:
            self._make_room(needed_bytes(case, self._device.alignment))
            self._kept[id(case)] = DeviceMemory(self._device, self._checks, case)
        self._kept.move_to_end(id(case))
        return self._kept[id(case)]

    def inputs(self, case: VerificationCase) -> Mapping[str, Buffer]:
        """Operands of a case that lie on the device as they were first written, by name; none if it is not kept."""
        kept = self._kept.get(id(case))
        return kept.inputs if kept else {}

    def clear(self) -> None:
        """Give all memory back."""
        while self._kept:
            self._kept.popitem()[1].release()

    @cached_property
    def _checks(self) -> Checks | None:
        return Checks.on(self._device)

    def _make_room(self, size: int) -> None:
        limit = _LARGEST_SHARE * self._device.target.global_memory_bytes
        while self._kept and sum(kept.size for kept in self._kept.values()) + size > limit:
            self._kept.popitem(last=False)[1].release()


def _judged(memory: HostMemory, programs: Sequence[Program], plan: Plan, case: VerificationCase) -> Verdict:
    runs: list[Traces] = []
    for poison in POISONS:
        runs.append(memory.run(programs, plan, poison))
        if wrong := runs[-1].trespass() or memory.not_zeroed(plan):
            return Verdict(memory.modified_input() or wrong)
    if wrong := memory.modified_input():
        return Verdict(wrong)
    written = (never_written(operand, runs) for operand in case.outputs if operand.role == "out")
    values = (run.wrong_value() for run in runs)
    found = next(filter(None, written), None) or next(filter(None, values), None)
    return Verdict(found) if found else Verdict(None, relative_error(runs[0]))
