"""How often does the protocol find a difference between a kernel and itself, on a device here, with or without load?

    python benchmarks/decisions_on_device.py [--device CPU] [--runs 100] [--busy 2] [--size 256 256 256]

Each run times one kernel as two candidates that race, and then decides as a step of a tuning file does; the first
candidate is the incumbent. Chance alone replaces the incumbent in 2.5 % of runs. `--busy` processes compute meanwhile.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench_quality import TYPE, candidates
from tunesmith.bench import Batch, Bench, Job, Policy, Race
from tunesmith.devices import choose as choose_device
from tunesmith.protocol import Contest, Objective, TimeTable, choose
from tunesmith.records import Configuration, Problem

POLICY = Policy(noise=0.02, sampling_seconds=0.25, warm_up_seconds=0.05)
SIDES = {Configuration({"side": name}): name for name in ("incumbent", "challenger")}


def decided(bench: Bench, job: Job) -> Configuration:
    """The side that wins a step in which both sides are the job's kernel."""
    jobs = {config: Job(name, job.solution, job.problem) for config, name in SIDES.items()}
    by_key = {job.key: config for config, job in jobs.items()}

    def confirm(configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        measured = bench.interleave([jobs[config] for config in configs], until_clear=True)
        return TimeTable(
            paired={
                (config, job.problem): measurement.samples
                for config, measurement in zip(configs, measured, strict=True)
                if measurement.ok
            }
        )

    first = bench.run(Batch((Race(tuple(jobs.values())),), racing=True))
    estimates = {
        by_key[raced.key]: {job.problem: measurement.estimate} for raced, measurement in first if measurement.estimate
    }
    incumbent = next(iter(SIDES))
    contest = Contest(tuple(SIDES), (job.problem,), estimates, Objective.GEOMEAN, lambda problem: 1.0, incumbent)
    decision = choose(contest, confirm)
    assert decision is not None, "the kernel ran before"
    return decision.winner


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run `count` processes that compute all the time."""
    processes = [multiprocessing.Process(target=_compute, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def _compute() -> None:
    number = 1
    while True:
        number = number * 3 % 1_000_003


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--size", type=int, nargs=3, default=(256, 256, 256))
    arguments = parser.parse_args()
    target = choose_device(arguments.device)
    (job,) = candidates(target, Problem(TYPE, tuple(arguments.size)), 1, seed=0)
    with tempfile.TemporaryDirectory() as folder, busy(arguments.busy), Bench(target, POLICY, Path(folder)) as bench:
        winners = [decided(bench, job) for _ in range(arguments.runs)]
    replaced = sum(SIDES[winner] == "challenger" for winner in winners)
    found = {"device": target.name, "busy": arguments.busy, "runs": arguments.runs, "replaced": replaced}
    print(json.dumps({**found, "share": replaced / arguments.runs}))


if __name__ == "__main__":
    main()
