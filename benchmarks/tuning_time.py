"""How long does tuning take, and how much of it is the device busy?

    python benchmarks/tuning_time.py FILE.yaml OUT [--device CUDA] [--budget 8] [--json RESULT.json]

Tunes FILE into OUT; what is in its store already is not measured again, and its time counts all the same. The busy
share is that part of the time from the first candidate to the last in which kernels were queued or verification ran,
from each measurement's start and costs. `tuning_beside_autotune.py` compares with `triton.autotune`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from tunesmith.records import Problem
from tunesmith.report import ProgressReport
from tunesmith.report.table import table, titled
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.tuning_file import TuningPlan, tune
from tunesmith.store import FILE_NAME, Store, StoredRun, StoreEntry

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
    def of(entries: Iterable[StoreEntry]) -> Spent:
        """The device serves one measurement after the other, finalists together: their costs are shares of one time.

        Pauses between runs that were resumed count as idle.
        """
        together: dict[str, list[StoreEntry]] = defaultdict(list)
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
    def of(device: str, final: Sequence[Problem], entries: Sequence[StoreEntry], runs: Sequence[StoredRun]) -> Tuning:
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


def final_problems(outcome: RunOutcome[TuningPlan]) -> list[Problem]:
    return list(
        dict.fromkeys(problem for group in outcome.plan.groups if group.table for problem in group.table.problems)
    )


def show(tuning: Tuning) -> None:
    shown = table("problems", "configurations", "minutes", "seconds a problem", "busy")
    shown.add_row(
        *(str(tuning.problems), f"{tuning.configurations:.1f}", f"{tuning.seconds / 60:.2f}"),
        *(f"{tuning.seconds / tuning.problems:.2f}", f"{100 * tuning.busy:.0f} %"),
    )
    console.print(titled(f"{tuning.device}, {time.strftime('%Y-%m-%d')}", shown))
    console.print(
        f"first candidate to last {tuning.span:.1f} s: timing {tuning.timing:.1f} s, verifying {tuning.verify:.1f} s;"
        f" {tuning.measurements} measurements"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a tuning file of GEMMs")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", help="a selector or part of a name, as `tunesmith devices` shows them")
    parser.add_argument("--budget", type=float, help="minutes to keep to")
    parser.add_argument("--json", type=Path, help="write the result here too")
    asked = parser.parse_args()
    with ProgressReport(Console(stderr=True)) as progress:
        outcome = tune(asked.file, asked.out, device=asked.device, budget_minutes=asked.budget, observe=progress)
    with Store.read(asked.out / FILE_NAME) as store:
        entries, runs = list(store.entries()), store.runs()
    final = final_problems(outcome)
    tuning = Tuning.of(outcome.target.name, final, entries, runs)
    show(tuning)
    if asked.json:
        result = {"date": time.strftime("%Y-%m-%d"), "tuning": asdict(tuning)}
        asked.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
