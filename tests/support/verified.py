"""Verification of one plan on one case by looking at every byte, for tests that have programs and no bench."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.host_memory import HostMemory
from tunesmith.bench.verification.run_inspection import Defect
from tunesmith.bench.verification.verify import _judged
from tunesmith.devices import Device, Program
from tunesmith.records import Plan


def verify(device: Device, programs: Sequence[Program], plan: Plan, case: VerificationCase) -> Defect | None:
    """What is wrong with it; None when all is right."""
    with HostMemory(device, case) as memory:
        return _judged(memory, programs, plan, case).wrong
