"""A kernel that hangs on the host's CPU is ended after the timeout of a launch, not after that of a compilation."""

from __future__ import annotations

import time

import pytest

from described import EXAMPLES, STENCIL, type_of
from opencl_runner import opencl_device
from tunesmith.bench import Batch, Bench, Job, Policy, Race, machine_failures
from tunesmith.bench.processes import process as processes
from tunesmith.kernels import KERNELS
from tunesmith.records import Configuration, Outcome, Problem, Solution

HANGS = """__kernel void stencil(__global const float *input, volatile __global float *output, int rows, int columns,
                                 float centre) { while (output[0] == output[0]) output[1] = 1.0f; }
"""
PATIENT, IMPATIENT = 600.0, 1.0


@pytest.mark.opencl
def test_a_hanging_kernel_takes_the_time_of_a_launch_although_the_first_launch_compiles(tmp_path, monkeypatch):
    """The limit is generous: two processes may run the kernel, and each must start, open the device and compile.

    Each process waited long for a processor before its kernel ran. That does not excuse the kernel.
    """
    asked = set()

    def waiting_seconds(process):
        """All of the waiting lies between the first question and the second."""
        waited = 1000.0 if process in asked else 0.0
        asked.add(process)
        return {"1": waited}

    monkeypatch.setattr(processes, "waiting_seconds", waiting_seconds)
    monkeypatch.setattr(machine_failures, "waiting_seconds", waiting_seconds)
    for name in (STENCIL, "custom_stencil.cl", "custom_stencil.cu", "custom_stencil.py"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    (tmp_path / "custom_stencil.cl").write_text(HANGS)
    kind = type_of(tmp_path / STENCIL)
    solution = Solution(kind, "Custom", KERNELS["Custom"].space(kind).defaults)
    job = Job("hangs", solution, Problem(kind, (64, 64), (), Configuration({})))
    policy = Policy(timeout_seconds=IMPATIENT, compile_timeout_seconds=PATIENT, compile_processes=1)
    began = time.monotonic()
    with Bench(opencl_device().target, policy, tmp_path / "cache") as bench:
        ((_, found),) = bench.run(Batch((Race((job,)),), False))
    assert (found.outcome, found.reason) == (Outcome.TIMEOUT, "timeout")
    assert "more than 1 s" in found.detail
    assert time.monotonic() - began < PATIENT / 2
