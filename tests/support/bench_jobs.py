"""Jobs of the fake GEMM family, for the tests of the bench."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.bench import Batch, Job, Policy, Race
from tunesmith.devices.fake import fake_target
from tunesmith.kernels.fake import FakeGemm
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Problem, Solution

KERNEL, OPERATION, TYPE = FakeGemm(), GemmOperation(), gemm_type("s")
GPU, CPU = fake_target("GPU"), fake_target("CPU")

QUICK = Policy(timeout_seconds=1.0, compile_timeout_seconds=1.5, compile_processes=1, sampling_seconds=0.05)


def problem(m: int = 48, n: int = 48, k: int = 48, beta: float = 0.5, leading: tuple[int, ...] = ()) -> Problem:
    return Problem(TYPE, (m, n, k), leading, Configuration({"alpha": 1.0, "beta": beta}))


def job(size: Problem | None = None, **parameters: object) -> Job:
    """A job whose key is its parameters; `fault` stands for FakeFault."""
    named = {"FakeFault" if name == "fault" else name: value for name, value in parameters.items()}
    config = KERNEL.space(TYPE).defaults | named  # type: ignore[arg-type]
    timed = size or problem()
    key = " ".join(f"{name}={value}" for name, value in parameters.items())
    return Job(f"{timed} {key}", Solution(TYPE, KERNEL.name, config), timed)


def batch(*races: Sequence[Job], racing: bool = False) -> Batch:
    return Batch(tuple(Race(tuple(jobs)) for jobs in races), racing)
