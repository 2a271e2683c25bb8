"""A bench that times nothing: what a cell takes follows from its key, so that whole commands can be recorded.

It stands in for the workers, the search for devices and the compilers' versions, in this process. Commands run as they
are, from their arguments to the files that they write, for devices that are not there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from golden_cells import HOST
from tunesmith.bench import Batch, Bench, Job
from tunesmith.bench.statistics import median_interval
from tunesmith.devices import APIS, FoundDevice, choice
from tunesmith.problems import OPERATIONS
from tunesmith.records import Cost, Measurement, Outcome, Problem
from tunesmith.session.frame.health import HealthWatch
from tunesmith.toolchains import TOOLCHAINS

GPU = replace(
    HOST,
    selector="OpenCL:1:0",
    name="a GPU of 24 units",
    kind="GPU",
    architecture="gfx90a",
    compute_units=24,
    max_work_group_size=1024,
    local_memory_bytes=64 * 1024,
    sub_group_size=64,
)
DEVICES = (GPU, HOST)

LOGIC_CHECK = "tunesmith.session.frame.run.check_logic"
LOGIC_CHECKERS = "tunesmith.session.frame.run.checker_count"
"""What launches written logic once more, in a process of its own: it would look for the device."""

START, RATE = 5e-6, 2e11
"""Seconds of any launch; FLOP/s or elements/s beyond it. A cell takes up to twice as long, as its key has it."""


def seconds_of(key: str, problem: Problem) -> float:
    share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little") / 2**32
    return START + OPERATIONS[problem.type.operation].work(problem) / RATE * (1 + share)


def measured(key: str, problem: Problem, spread: float = 0.002) -> Measurement:
    """Seven samples around the cell's time."""
    time = seconds_of(key, problem)
    samples = [time * (1 + spread * step / 3) for step in (0, 2, -1, 3, -3, 1, -2)]
    return Measurement(
        Outcome.OK,
        detail="relative error 1e-07",
        samples=tuple(samples),
        estimate=median_interval(samples),
        cost=Cost(0.25, 0.125, 0.5),
    )


def _nothing(*_: object, **__: object) -> None:
    """Of a bench without processes, and of a look at a device that is not there."""


@contextmanager
def compilers_named(*languages: str) -> Iterator[None]:
    """Within it, the compilers of these languages have the same version on every machine."""
    with pytest.MonkeyPatch.context() as patch:
        for language in languages:
            patch.setattr(type(TOOLCHAINS[language]), "version", lambda self, _: f"a compiler of {self.language} 1.0")
        yield


@contextmanager
def nothing_measured(spread: float = 0.002) -> Iterator[None]:
    """Within it, commands find `DEVICES` and the fake ones, and what they measure takes what its key says. With a
    `spread` of a half or more of a time no two cells can be told apart.
    """

    def run(self: Bench, batch: Batch) -> Iterator[object]:
        for job in dict.fromkeys(job for race in batch.races for job in race.jobs):
            yield job, measured(job.key, job.problem, spread)

    def interleave(self: Bench, jobs: Sequence[Job], until_clear: bool = False) -> list[Measurement]:
        return [measured(job.key, job.problem, spread) for job in jobs]

    found = {"OpenCL": tuple(FoundDevice(target.name, target) for target in DEVICES), "fake": APIS["fake"].find()}
    with compilers_named("OpenCL", "CUDA", "BLAS", "Triton"), pytest.MonkeyPatch.context() as patch:
        for name, stand_in in {"__init__": _nothing, "close": _nothing, "run": run, "interleave": interleave}.items():
            patch.setattr(Bench, name, stand_in)
        patch.setattr(choice, "_find", lambda api, _drivers: found.get(api, ()))
        patch.setattr(choice, "after_trial", lambda device, _drivers: device)
        patch.setattr(HealthWatch, "look_if_due", _nothing)
        patch.setattr(LOGIC_CHECK, lambda *_, **__: [])
        patch.setattr(LOGIC_CHECKERS, lambda: 0)
        yield
