"""How good is the bench itself, on a device of this machine?

    python benchmarks/bench_quality.py [--device OpenCL] [--size 512 512 512] [--candidates 24] [--json]

- A/A noise floor: one solution against itself, interleaved like finalists. The log ratio should be zero. Its distance
  from zero is the smallest difference that the bench can show; 5 % of the intervals may exclude zero.
- Busy share: the part of the wall time, from the first candidate to the last result, in which a kernel or its
  verification ran. On a device that is the host's CPU, the rest is compiling, which cannot overlap.
- Racing: wall time and samples with and without racing on the same candidates, and how much slower the winner with
  racing is than the winner without; both winners are measured again, interleaved.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tunesmith.bench import Batch, Bench, Job, Policy, Race, paired_log_ratio
from tunesmith.devices import APIS, choose
from tunesmith.kernels import Kernel, families_of
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Measurement, Problem, Solution, Target

TYPE = gemm_type("s", transpose_b=False)

Results = list[tuple[Job, Measurement]]


def candidates(target: Target, size: Problem, count: int, seed: int) -> list[Job]:
    """Random legal configurations of the families that run on the device; the same seed gives the same candidates."""
    draw = random.Random(seed)
    kernels = [kernel for kernel in families_of("GEMM") if kernel.language in APIS[target.api].languages]
    jobs: dict[str, Job] = {}
    for _ in range(200 * count):
        kernel = draw.choice(kernels)
        # FakeFault, a parameter of the fake family, is for tests.
        space = [parameter for parameter in kernel.space(TYPE, target) if parameter.name != "FakeFault"]
        defaults = kernel.space(TYPE, target).defaults
        config = defaults | {
            parameter.name: draw.choice(parameter.values) for parameter in draw.sample(space, min(3, len(space)))
        }
        if _is_legal(kernel, config, size, target):
            candidate = job(kernel, config, size)
            jobs.setdefault(candidate.key, candidate)
        if len(jobs) == count:
            break
    return list(jobs.values())


def _is_legal(kernel: Kernel, config: Configuration, size: Problem, target: Target) -> bool:
    return not (any(kernel.rejections(config, TYPE, target)) or any(kernel.rejections_for(config, size, target)))


def job(kernel: Kernel, config: Configuration, size: Problem) -> Job:
    """A job that verifies and times a solution on a problem, like a cell of a tuning run."""
    return Job(f"{kernel.name} {config.to_json()} {size.to_json()}", Solution(size.type, kernel.name, config), size)


def noise_floor(bench: Bench, job: Job, repetitions: int) -> dict[str, float]:
    """Log ratios of a solution to itself, in percent."""
    ratios = []
    for _ in range(repetitions):
        first, second = bench.interleave([job, job])
        ratios.append(paired_log_ratio(first.samples, second.samples))
    errors = sorted(abs(mean) for mean, _, _ in ratios)
    return {
        "repetitions": repetitions,
        "median_error_percent": 100 * statistics.median(errors),
        "largest_error_percent": 100 * errors[-1],
        "median_half_width_percent": 100 * statistics.median((high - low) / 2 for _, low, high in ratios),
        "intervals_without_zero_percent": 100 * sum(low > 0 or high < 0 for _, low, high in ratios) / repetitions,
    }


def screen(target: Target, policy: Policy, jobs: list[Job], racing: bool) -> tuple[Results, float]:
    """The results of all jobs in a bench with an empty cache, and the wall seconds."""
    with tempfile.TemporaryDirectory() as cache, Bench(target, policy, Path(cache)) as bench:
        began = time.perf_counter()
        results = list(bench.run(Batch((Race(tuple(jobs)),), racing)))
        return results, time.perf_counter() - began


def busy_share(results: Results, wall: float) -> float:
    return sum(measurement.cost.verify + measurement.cost.timing for _, measurement in results) / wall


def timed(results: Results) -> Iterator[tuple[float, Job, Measurement]]:
    yield from (
        (measurement.estimate.seconds, job, measurement)
        for job, measurement in results
        if measurement.ok and measurement.estimate
    )


def fastest(results: Results) -> Job:
    return min(timed(results), key=lambda timed_job: timed_job[0])[1]


def racing(bench: Bench, with_it: Results, without: Results) -> dict[str, Any]:
    chosen, other = fastest(with_it), fastest(without)
    cost = {
        name: sum(measurement.cost.timing for _, measurement in results)
        for name, results in (("with", with_it), ("without", without))
    }
    if chosen.key == other.key:
        regret = (0.0, 0.0, 0.0)
    else:
        first, second = bench.interleave([chosen, other])
        regret = paired_log_ratio(first.samples, second.samples)
    return {
        "raced": sum(measurement.raced for _, measurement in with_it),
        "timing_seconds_with": cost["with"],
        "timing_seconds_without": cost["without"],
        "timing_saved_percent": 100 * (1 - cost["with"] / cost["without"]),
        "same_winner": chosen.key == other.key,
        "regret_percent": [100 * (math.exp(value) - 1) for value in regret],
    }


def report(options: argparse.Namespace) -> dict[str, Any]:
    target = choose(options.device)
    policy = Policy(seed=options.seed)
    size = Problem(TYPE, tuple(options.size), (), Configuration({"alpha": 1.0, "beta": 0.0}))
    jobs = candidates(target, size, options.candidates, options.seed)
    raced, raced_wall = screen(target, policy, jobs, racing=True)
    full, full_wall = screen(target, policy, jobs, racing=False)
    with tempfile.TemporaryDirectory() as cache, Bench(target, policy, Path(cache)) as bench:
        floor = noise_floor(bench, fastest(full), options.repetitions)
        race = racing(bench, raced, full)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.node()}, {platform.system()} {platform.machine()}",
        "device": target.name,
        "size": str(size),
        "candidates": len(jobs),
        "ran": sum(1 for _ in timed(full)),
        "noise_floor": floor,
        "busy_share_percent": {"racing": 100 * busy_share(raced, raced_wall), "all": 100 * busy_share(full, full_wall)},
        "wall_seconds": {"racing": raced_wall, "all": full_wall},
        "racing": race,
    }


def table(facts: dict[str, Any]) -> str:
    floor, race = facts["noise_floor"], facts["racing"]
    regret = race["regret_percent"]
    rows = {
        "machine, date": f"{facts['machine']}, {facts['date']}",
        "device, problem": f"{facts['device']}, {facts['size']}",
        "candidates": f"{facts['candidates']}, of which {facts['ran']} ran",
        "A/A error": f"median {floor['median_error_percent']:.2f} %, largest {floor['largest_error_percent']:.2f} %"
        f" of {floor['repetitions']}",
        "A/A half interval": f"median {floor['median_half_width_percent']:.2f} %",
        "A/A without zero": f"{floor['intervals_without_zero_percent']:.0f} % of the intervals (5 % are due)",
        "busy share": "{all:.0f} % without racing, {racing:.0f} % with it".format(**facts["busy_share_percent"]),
        "wall time": "{all:.1f} s without racing, {racing:.1f} s with it".format(**facts["wall_seconds"]),
        "timing by racing": f"{race['timing_seconds_without']:.1f} s to {race['timing_seconds_with']:.1f} s:"
        f" {race['timing_saved_percent']:.0f} % saved, {race['raced']} stopped early",
        "regret of racing": "none, the same winner"
        if race["same_winner"]
        else f"{regret[0]:+.2f} % [{regret[1]:+.2f}, {regret[2]:+.2f}]",
    }
    return "\n".join(f"{name:<18}  {value}" for name, value in rows.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="a selector or part of a name, as `tunesmith devices` shows them")
    parser.add_argument("--size", type=int, nargs=3, default=[512, 512, 512], metavar=("M", "N", "K"))
    parser.add_argument("--candidates", type=int, default=24)
    parser.add_argument("--repetitions", type=int, default=20, help="of the A/A comparison")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts = report(options)
    print(json.dumps(facts, indent=1) if options.json else table(facts))


if __name__ == "__main__":
    main()
