"""A store with measurements of a generator, made up."""

from __future__ import annotations

from pathlib import Path

from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS
from tunesmith.problems.random import random_type, scalars_for
from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem, Solution
from tunesmith.store import FILE_NAME, FULL, RunEnd, RunStart, RunState, Store, StoreEntry

START = RunStart(("tunesmith",), "a.yaml", "0" * 64, "a fake device", "1.0", "fake:0", "0.1.0")


def random_store(folder: Path, generator: str = "xorwow", seconds: float = 1e-3) -> Path:
    kind = random_type(generator)
    problem = Problem(kind, (1 << 20,), (), scalars_for("uniform"))
    family = KERNELS["OpenCLRandom"]
    with Store.open(folder / FILE_NAME) as store:
        run = store.begin_run(START)
        for block in (256, 128):
            config = family.space(kind).defaults | {"BlockSize": block, "GridSize": 512}
            made = Measurement(Outcome.OK, samples=(seconds,), estimate=Estimate(seconds, seconds, seconds, 1))
            solution = Solution(kind, "OpenCLRandom", Configuration(config))
            store.commit([StoreEntry(f"k{block}", FULL, "i", solution, problem, fake_target("GPU"), "compiler", made)])
        store.end_run(run, RunEnd(RunState.FINISHED, 1.0, 1, 0))
    return folder
