"""How long does a policy take to choose a configuration for a new product?

    python benchmarks/policy_speed.py [--problems 200] [--architecture sm_90] [--json RESULT.json]

The output has a row for each policy and kernel family of one target: microseconds, as median and 95th percentile over
random problems (sizes log-uniform from 1 to 16384) for which the family has a legal configuration. Every problem is new
to the process, so no decision is cached. The defaults and candidates of a family and problem type are prepared before,
by one call for each type; the slowest of these first calls has its own column. Modules are imported before the clock
starts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tunesmith.kernels import KERNELS, Kernel
from tunesmith.models.intensity.policies import POLICIES, PolicyChoice, TilePolicy
from tunesmith.models.intensity.policies.known_targets import KNOWN_TARGETS
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem, ProblemType, Target

LARGEST = 16384
TYPES = tuple(gemm_type(letter, transpose_b=transposed) for letter in ("s", "d", "b") for transposed in (True, False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--architecture", default="sm_90", choices=[*KNOWN_TARGETS])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    target = KNOWN_TARGETS[options.architecture]
    problems = random_problems(options.problems, np.random.default_rng(0))
    rows = [
        row
        for kernel in MAPPINGS
        for policy in POLICIES.values()
        if (row := timed(policy, kernel, target, problems)) is not None
    ]
    if options.json:
        options.json.write_text(json.dumps({"target": target.name, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    shown = Table("family", "policy", "choices", "median us", "95 % us", "first us", box=None)
    for row in rows:
        shown.add_row(*(f"{value:.0f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console().print(shown)


def random_problems(count: int, random: np.random.Generator) -> list[Problem]:
    sizes = 2 ** random.uniform(0, np.log2(LARGEST), (count, 3))
    types: list[ProblemType] = [TYPES[index % len(TYPES)] for index in range(count)]
    return [Problem(problem_type, tuple(map(int, row))) for problem_type, row in zip(types, sizes, strict=True)]


def timed(
    policy: TilePolicy, kernel: str, target: Target, problems: list[Problem]
) -> dict[str, str | int | float] | None:
    """The row of a policy and kernel family; None if the family has no legal configuration for any of the problems."""
    family, first = KERNELS[kernel], 0.0
    policy.choose(Problem(TYPES[0], (64, 64, 64)), target, family)
    for kind in TYPES:
        first = max(first, _seconds(policy, Problem(kind, (48, 48, 48)), target, family)[0])
    taken = [_seconds(policy, problem, target, family) for problem in problems]
    seconds = [duration for duration, is_choice in taken if is_choice]
    if not seconds:
        return None
    return {
        "family": kernel,
        "policy": policy.name,
        "choices": len(seconds),
        "median": 1e6 * statistics.median(seconds),
        "high": 1e6 * float(np.quantile(seconds, 0.95)),
        "first": 1e6 * first,
    }


def _seconds(policy: TilePolicy, problem: Problem, target: Target, family: Kernel) -> tuple[float, bool]:
    begin = time.perf_counter()
    answer = policy.choose(problem, target, family)
    return time.perf_counter() - begin, isinstance(answer, PolicyChoice)


if __name__ == "__main__":
    main()
