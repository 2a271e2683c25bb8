"""How long does tuning take, how much of it is the device busy, and how long does triton.autotune take for the same?

    python benchmarks/tuning_time.py FILE.yaml OUT [--device CUDA] [--autotune 10] [--json RESULT.json]

Tunes FILE into OUT; what is in its store already is not measured again, and its time counts all the same. The busy
share is that part of the time from the first candidate to the last in which kernels were queued or verification ran,
from each measurement's start and costs. Beside it, on an NVIDIA GPU, `triton.autotune` on a plain matmul in Triton, on
every so many of the final problems, as many as --autotune says, with as many configurations as a problem had here on
average, in a process of its own with an empty cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem
from tunesmith.report import ProgressReport
from tunesmith.report._table import table, titled
from tunesmith.session.frame.record import Outcome
from tunesmith.session.tuning_file import TuningPlan, tune
from tunesmith.store import FILE_NAME, Entry, Run, Store

HERE = Path(__file__).parent
AUTOTUNE = HERE / "triton_autotune.py"
console = Console(highlight=False, width=150)


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds from the first candidate to the end of the last, and what of them went into what, on one device."""

    span: float
    verify: float
    timing: float

    @property
    def busy(self) -> float:
        """The share in which kernels were queued or verification ran."""
        return (self.verify + self.timing) / self.span if self.span else 0.0

    @staticmethod
    def of(entries: Iterable[Entry]) -> Spent:
        """The device serves one measurement after the other, finalists together: their costs are shares of one time.

        Pauses between runs that were resumed count as idle.
        """
        together: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if entry.measurement.started:
                alone = not entry.round.startswith("confirm/")
                together[entry.key + entry.round if alone else entry.round].append(entry)
        costs = [one.measurement.cost for group in together.values() for one in group]
        begins = {name: min(one.measurement.started for one in group) for name, group in together.items()}
        ends = (
            begins[name] + sum(one.measurement.cost.verify + one.measurement.cost.timing for one in group)
            for name, group in together.items()
        )
        span = max(ends, default=0.0) - min(begins.values(), default=0.0)
        return Spent(span, sum(cost.verify for cost in costs), sum(cost.timing for cost in costs))


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a tuning run took: `configurations` are distinct solutions a problem, on average."""

    device: str
    problems: int
    configurations: float
    measurements: int
    seconds: float
    span: float
    verify: float
    timing: float
    busy: float

    @staticmethod
    def of(device: str, final: Sequence[Problem], entries: Sequence[Entry], runs: Sequence[Run]) -> Tuning:
        tried: dict[Problem, set[str]] = {problem: set() for problem in final}
        for entry in entries:
            if entry.problem in tried:
                tried[entry.problem].add(entry.identity)
        spent = Spent.of(entries)
        return Tuning(
            device=device,
            problems=len(final),
            configurations=statistics.fmean(map(len, tried.values())),
            measurements=len(entries),
            seconds=sum(run.end.seconds for run in runs if run.end),
            **asdict(spent),
            busy=spent.busy,
        )


def final_problems(outcome: Outcome[TuningPlan]) -> list[Problem]:
    return list(
        dict.fromkeys(problem for group in outcome.plan.groups if group.table for problem in group.table.problems)
    )


def spread(problems: Sequence[Problem], count: int) -> list[Problem]:
    """So many of the list, evenly over it, the first among them."""
    count = min(count, len(problems))
    return [problems[place * len(problems) // count] for place in range(count)]


def autotune(problems: Sequence[Problem], configurations: int) -> dict[str, Any]:
    """Seconds for each problem, and how many configurations ran; RuntimeError with what was said if it ends badly."""
    gemms = [Gemm.of(problem) for problem in problems]
    # Row-major, as torch has them: the transposed product of the column-major problem.
    asked = {
        "configurations": configurations,
        "problems": [
            {"m": g.n, "n": g.m, "k": g.k, "trans_a": g.transpose_b, "trans_b": g.transpose_a, "dtype": g.dtype}
            for g in gemms
        ],
    }
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TRITON_CACHE_DIR": cache}
        run = [sys.executable, str(AUTOTUNE), json.dumps(asked)]
        done = subprocess.run(run, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{AUTOTUNE.name} ended with {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(tuning: Tuning, peer: dict[str, Any] | None) -> None:
    shown = table("", "problems", "configurations", "minutes", "seconds a problem", "busy", right=("problems",))
    shown.add_row(
        "tunesmith",
        *(str(tuning.problems), f"{tuning.configurations:.1f}", f"{tuning.seconds / 60:.2f}"),
        *(f"{tuning.seconds / tuning.problems:.2f}", f"{100 * tuning.busy:.0f} %"),
    )
    if peer:
        seconds = peer["seconds"]
        shown.add_row(
            "triton.autotune",
            *(str(len(seconds)), str(peer["configurations"]), f"{sum(seconds) / 60:.2f}"),
            *(f"{statistics.fmean(seconds):.2f}", ""),
        )
    console.print(titled(f"{tuning.device}, {time.strftime('%Y-%m-%d')}", shown))
    console.print(
        f"first candidate to last {tuning.span:.1f} s: timing {tuning.timing:.1f} s, verifying {tuning.verify:.1f} s;"
        f" {tuning.measurements} measurements"
    )
    if peer:
        share = tuning.seconds / tuning.problems / statistics.fmean(peer["seconds"])
        console.print(f"a problem takes {share:.3f} of triton.autotune's time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a tuning file of GEMMs")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", help="a selector or part of a name, as `tunesmith devices` shows them")
    parser.add_argument("--autotune", type=int, default=10, help="problems for triton.autotune; 0 leaves it out")
    parser.add_argument("--json", type=Path, help="write the result here too")
    asked = parser.parse_args()
    with ProgressReport(Console(stderr=True)) as progress:
        outcome = tune(asked.file, asked.out, device=asked.device, observe=progress)
    with Store.read(asked.out / FILE_NAME) as store:
        entries, runs = list(store.entries()), store.runs()
    final = final_problems(outcome)
    tuning = Tuning.of(outcome.target.name, final, entries, runs)
    peer = None
    if asked.autotune and outcome.target.api == "CUDA":
        unbatched = [problem for problem in final if Gemm.of(problem).batch == 1]
        peer = autotune(spread(unbatched, asked.autotune), round(tuning.configurations))
    show(tuning, peer)
    if asked.json:
        result = {"date": time.strftime("%Y-%m-%d"), "tuning": asdict(tuning), "autotune": peer}
        asked.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
