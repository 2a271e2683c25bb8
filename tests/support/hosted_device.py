"""A real device on whose memory programs of the fake one run: the mutants meet verification by a device's own programs.

Memory, copies and the programs for verification are the real device's. A plan of anything else is carried out on the
host, by the fake device that `host` names, on bytes that are fetched before and put back after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from checks_on_host import CheckingDevice, checking_verifier
from cuda_runner import cuda_device
from opencl_runner import opencl_device
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.verify import FirstLaunch, Verdict, Verifier
from tunesmith.devices import Bytes, Device, Prepared, Program
from tunesmith.devices.fake import FakeDevice, FakeMemory
from tunesmith.records import Binary, Plan


@dataclass(frozen=True)
class Part:
    """A buffer of the real device with the allocation that it is part of, and where."""

    handle: Any
    root: Any
    start: int
    size: int
    whole: int


class HostedDevice(Device):
    def __init__(self, real: Device) -> None:
        self.real, self.target = real, real.target
        self.host: FakeDevice | None = None
        self.read_bytes = 0
        self._native: set[int] = set()

    @property
    def alignment(self) -> int:
        return self.real.alignment

    def allocate(self, size: int) -> Part:
        handle = self.real.allocate(size)
        return Part(handle, handle, 0, size, size)

    def view(self, buffer: Part, offset: int, size: int) -> Part:
        handle = self.real.view(buffer.handle, offset, size)
        return Part(handle, buffer.root, buffer.start + offset, size, buffer.whole)

    def write(self, buffer: Part, data: Bytes, offset: int = 0) -> None:
        self.real.write(buffer.handle, data, offset)

    def read(self, buffer: Part, size: int, offset: int = 0) -> Bytes:
        self.read_bytes += size
        return self.real.read(buffer.handle, size, offset)

    def copy(self, source: Part, target: Part, size: int, source_offset: int = 0, target_offset: int = 0) -> None:
        self.real.copy(source.handle, target.handle, size, source_offset, target_offset)

    def wrap(self, array: np.ndarray) -> None:
        return None

    def load(self, binary: Binary) -> Program:
        if binary.language == "fake":
            return binary
        program = self.real.load(binary)
        self._native.add(id(program))
        return program

    def prepare(  # type: ignore[override]
        self, plan: Plan, programs: Sequence[Program], operands: Mapping[str, Part], workspace: Part | None
    ) -> Prepared | HostedPlan:
        if programs and id(programs[0]) in self._native:
            return self.real.prepare(plan, programs, {name: part.handle for name, part in operands.items()}, None)
        return HostedPlan(self, plan, programs, operands, workspace)

    def time(self, executions: Sequence[Prepared]) -> float:
        raise NotImplementedError

    def synchronize(self) -> None:
        self.real.synchronize()

    def release(self, *buffers: Part) -> None:
        self.real.release(*(part.handle for part in buffers))

    def close(self) -> None:
        raise NotImplementedError


@dataclass
class HostedPlan:
    device: HostedDevice
    plan: Any
    programs: Any
    operands: Any
    workspace: Any

    def enqueue(self) -> None:
        real, host = self.device.real, self.device.host
        parts = [*self.operands.values(), *([self.workspace] if self.workspace else [])]
        whole = {id(part.root): (part.root, real.read(part.root, part.whole)) for part in parts}

        def memory(part: Part) -> FakeMemory:
            return FakeMemory(whole[id(part.root)][1], part.start, part.size)

        operands = {name: memory(part) for name, part in self.operands.items()}
        workspace = memory(self.workspace) if self.workspace else None
        host.prepare(self.plan, self.programs, operands, workspace).enqueue()
        host.synchronize()
        for root, content in whole.values():
            real.write(root, content)


REAL = {"OpenCL": opencl_device, "CUDA": cuda_device}


@cache
def hosted_verifier(api: str) -> tuple[HostedDevice | CheckingDevice, Verifier]:
    if api == "NumPy":
        return checking_verifier()
    hosted = HostedDevice(REAL[api]())
    verifier = Verifier(hosted)
    if not hosted.target.double_precision:
        pytest.skip(f"{hosted.target.name} has no double precision, which the programs for verification need")
    assert verifier._device_programs, "the programs for verification do not compile"
    return hosted, verifier


def judged(
    judge: str, host: FakeDevice, programs: Any, plan: Any, case: VerificationCase, first: FirstLaunch | None = None
) -> Verdict:
    """What verification says, with the fake device's programs: by looking at bytes ("host"), by a device's own programs
    ("OpenCL", "CUDA"), or by the same programs in NumPy ("NumPy")."""
    if judge == "host":
        verifier = Verifier(host)
        assert verifier.hold(case) is None, "the fake device has no programs for verification"
        return verifier.judge(programs, plan, case, first)
    hosted, verifier = hosted_verifier(judge)
    hosted.host = host
    verifier.hold(case)
    assert verifier.inputs(case).keys() == {operand.name for operand in case.operands if operand.role != "out"}
    try:
        return verifier.judge(programs, plan, case, first)
    finally:
        verifier.clear()
