"""How long does tuning take, and for how much of this time is the device busy?

    python benchmarks/tuning_time.py FILE.yaml OUT [--device CUDA] [--budget 8] [--json RESULT.json]

Tunes FILE into OUT. Measurements that OUT's store already has are not repeated, but their time counts. The busy share
is the part of the time, from the first candidate to the last, in which kernels were queued or verification ran,
computed from each measurement's start and costs. `tuning_beside_autotune.py` compares with `triton.autotune`.
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
class DeviceTime:
    """Seconds of one device from the first candidate to the end of the last, and the parts for verifying and timing."""

    span: float
    verify: float
    timing: float

    @property
    def busy(self) -> float:
        """The share in which kernels were queued or verification ran."""
        return (self.verify + self.timing) / self.span if self.span else 0.0

    @staticmethod
    def of(entries: Iterable[StoreEntry]) -> DeviceTime:
        """The device time of some entries. Measurements run one after the other; finalists are measured together, and
        their costs are shares of one time. Pauses before a resumed run count as idle.
        """
        entries_by_measurement: dict[str, list[StoreEntry]] = defaultdict(list)
        for entry in entries:
            if entry.measurement.started:
                alone = not entry.round.startswith("confirm/")
                entries_by_measurement[entry.key + entry.round if alone else entry.round].append(entry)
        costs = [entry.measurement.cost for group in entries_by_measurement.values() for entry in group]
        begins = {
            name: min(entry.measurement.started for entry in group) for name, group in entries_by_measurement.items()
        }
        ends = (
            begins[name] + sum(entry.measurement.cost.verify + entry.measurement.cost.timing for entry in group)
            for name, group in entries_by_measurement.items()
        )
        span = max(ends, default=0.0) - min(begins.values(), default=0.0)
        return DeviceTime(span, sum(cost.verify for cost in costs), sum(cost.timing for cost in costs))


@dataclass(frozen=True, slots=True)
class Tuning:
    """The cost of a tuning run; `configurations` is the number of distinct solutions of a problem, on average."""

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
        spent = DeviceTime.of(entries)
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
    options = parser.parse_args()
    with ProgressReport(Console(stderr=True)) as progress:
        outcome = tune(
            options.file, options.out, device=options.device, budget_minutes=options.budget, observe=progress
        )
    with Store.read(options.out / FILE_NAME) as store:
        entries, runs = list(store.entries()), store.runs()
    final = final_problems(outcome)
    tuning = Tuning.of(outcome.target.name, final, entries, runs)
    show(tuning)
    if options.json:
        result = {"date": time.strftime("%Y-%m-%d"), "tuning": asdict(tuning)}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
