"""Is a plan right? It runs on guarded, poisoned memory, and its outputs are compared with a reference."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tunesmith.devices import Buffer, Device, Program
from tunesmith.records import Plan

from .case import VerificationCase
from .device_memory import DeviceMemory, needed_bytes, supports
from .device_programs import VerificationPrograms
from .host_memory import HostMemory
from .poison import POISONS
from .run_inspection import Defect, RunInspection, never_written, relative_error

_LARGEST_SHARE = 0.25
"""Largest share of the device's memory for all cases that are kept there."""


FirstLaunch = tuple[Sequence[Program], Plan]
"""The launch whose results others are compared with: its programs and plan."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first defect (`wrong`), or None and the relative error of right outputs."""

    wrong: Defect | None
    error: float | None = None


class Verifier:
    """Verifies plans on one device, and keeps cases there for the next candidates of a problem."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._kept: OrderedDict[int, DeviceMemory] = OrderedDict()

    def prepare(self) -> None:
        """Compile and load the device's verification programs."""
        _ = self._device_programs

    def judge(
        self, programs: Sequence[Program], plan: Plan, case: VerificationCase, first: FirstLaunch | None = None
    ) -> Verdict:
        """Run a plan and look at every byte that it could have changed. Raises LaunchError.

        The plan runs once for each poison in the outputs, so that a kernel that reads an output which it should only
        write is found.

        Inputs, guard bands and the elements between an output's rows must not change. Every element of an output must
        be written. The elements that the reference covers must be within its bound; NaN never is. If the case is
        compared with a first launch, that is `first`, or this plan itself.
        """
        with self.hold(case) or HostMemory(self._device, case) as memory:
            if memory.awaits_first and (wrong := memory.learn(*(first or (programs, plan)))):
                return Verdict(wrong)
            return _judged(memory, programs, plan, case)

    def hold(self, case: VerificationCase) -> DeviceMemory | None:
        """Bring a case to the device and keep it there; None if the device has no verification programs, or they do not
        support the case. Raises LaunchError."""
        if self._device_programs is None or not supports(case):
            return None
        if id(case) not in self._kept:
            self._make_room(needed_bytes(case, self._device.alignment))
            self._kept[id(case)] = DeviceMemory(self._device, self._device_programs, case)
        self._kept.move_to_end(id(case))
        return self._kept[id(case)]

    def inputs(self, case: VerificationCase) -> Mapping[str, Buffer]:
        """The contents that a case's launches read, on the device and by name; none if the case is not kept."""
        kept = self._kept.get(id(case))
        return kept.inputs if kept else {}

    def clear(self) -> None:
        """Free all memory."""
        while self._kept:
            self._kept.popitem()[1].release()

    @cached_property
    def _device_programs(self) -> VerificationPrograms | None:
        return VerificationPrograms.on(self._device)

    def _make_room(self, size: int) -> None:
        limit = _LARGEST_SHARE * self._device.target.global_memory_bytes
        while self._kept and sum(kept.size for kept in self._kept.values()) + size > limit:
            self._kept.popitem(last=False)[1].release()


def _judged(memory: HostMemory, programs: Sequence[Program], plan: Plan, case: VerificationCase) -> Verdict:
    runs: list[RunInspection] = []
    for poison in POISONS:
        runs.append(memory.run(programs, plan, poison))
        if wrong := runs[-1].outside_write() or memory.not_zeroed(plan):
            return Verdict(memory.modified_input() or wrong)
    if wrong := memory.modified_input():
        return Verdict(wrong)
    unwritten = (never_written(operand, runs) for operand in case.outputs if operand.role == "out")
    wrong_values = (run.wrong_value() for run in runs)
    wrong = next(filter(None, unwritten), None) or next(filter(None, wrong_values), None)
    return Verdict(wrong) if wrong else Verdict(None, relative_error(runs[0]))
