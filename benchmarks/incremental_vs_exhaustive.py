"""Does the protocol find what an exhaustive sweep finds, and at what cost? On one space, against random search.

    python benchmarks/incremental_vs_exhaustive.py                    # from the recorded sweep
    python benchmarks/incremental_vs_exhaustive.py --record FOLDER    # sweep this machine first (8 min on an H200)

The space and its phases are in `incremental_space.yaml`. First the sweep measures every legal configuration once. Then
the protocol runs, with the sweep's times as its first times, and measures its finalists. Then the sweep's best 60 and
the protocol's winner are measured again, interleaved; only these second times are compared. Random search is computed
exactly from the ranks of all first times: the expected second time of the best of n draws without repetition, and the
chance to come within 3 %. It gets as many draws as the protocol had enqueues, finalists included.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import Console

from tunesmith.bench import Bench
from tunesmith.protocol import Benchmark, Cell, Fork, Phases, TimeTable, run
from tunesmith.records import Configuration, Estimate, Problem, thaw
from tunesmith.report import ProgressReport
from tunesmith.session.frame.measure import Ledger, RecordedMeasure
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.tuning_file.file import device_for, policy_of, read
from tunesmith.store import Store

HERE = Path(__file__).parent
SPACE = HERE / "incremental_space.yaml"
RECORDED = HERE / "recorded" / "incremental_sweep.csv"
AGAIN = 60


@dataclass(frozen=True, slots=True)
class SweptConfiguration:
    """A configuration's first time, and its second if it was among the best."""

    first: Estimate
    second: float | None


def everything(phases: Phases) -> Iterator[Configuration]:
    """Every combination of the phases' choices; a step that is repeated in several passes counts once."""
    varied = dict.fromkeys(step.choices for step in phases.steps if isinstance(step, Benchmark | Fork))
    for choices in product(*varied):
        config = phases.start
        for choice in choices:
            config = config | choice
        yield config


def record(folder: Path, phases: Phases, problem: Problem, judge: ConfigurationOracle, measure: RecordedMeasure):
    """Measure every legal configuration, run the protocol, measure the best again. A stopped run is continued."""
    legal = [
        config
        for config in everything(phases)
        if not judge.rejections(config) and not judge.rejections_for(config, problem)
    ]
    distinct = list({judge.identity(config): config for config in legal}.values())
    times = measure.screen([distinct], [problem], racing=True).cells
    counted = CountingMeasure(measure, judge)
    winner = run(phases, counted, judge).decisions[problem].winner
    ranked = sorted(
        (config for config in distinct if (config, problem) in times), key=lambda config: times[config, problem].seconds
    )
    same = {judge.identity(config): config for config in [*ranked[:AGAIN], winner]}
    again = {
        judge.identity(config): estimate
        for (config, _), estimate in measure.confirm(list(same.values()), [problem]).cells.items()
    }
    names = sorted({name for step in phases.steps if isinstance(step, Benchmark | Fork) for name in step.choices[0]})
    RECORDED.parent.mkdir(exist_ok=True)
    with RECORDED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "seconds", "low", "high", "samples", "again"])
        for config in distinct:
            if time_ := times.get((config, problem)):
                values = [json.dumps(thaw(config[name])) for name in names]
                second = again.get(judge.identity(config))
                rest = (time_.seconds, time_.low, time_.high, time_.count, second.seconds if second else "")
                writer.writerow([*values, *rest])
    facts = {
        "device": judge.target.name,
        "driver": judge.target.driver,
        "date": time.strftime("%Y-%m-%d"),
        "problem": str(problem),
        "combinations": sum(1 for _ in everything(phases)),
        "legal": len(legal),
        "distinct": len(distinct),
        "ran": len(times),
        "screened": len(counted.screened),
        "confirmed": counted.confirmed,
        "winner": {name: thaw(value) for name, value in winner.items()},
    }
    RECORDED.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")


class CountingMeasure:
    """The protocol's `measure`, which counts the configurations that the protocol asks for."""

    def __init__(self, measure: RecordedMeasure, judge: ConfigurationOracle) -> None:
        self._measure, self._judge = measure, judge
        self.screened: set[str] = set()
        self.confirmed = 0

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> TimeTable:
        self.screened |= {self._judge.identity(config) for group in groups for config, _ in group}
        # Racing, as in the sweep, so that the first times are found; the full times are the second times.
        return self._measure.screen_cells(groups, racing=True)

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        self.confirmed += len(configs) * len(problems)
        return self._measure.confirm(configs, problems)

    def announce(self, confirmations: object) -> None:
        """There is one device, so what will be asked for is measured when it is asked for."""


def recorded() -> dict[Configuration, SweptConfiguration]:
    """The recorded sweep, by the configurations' varied parameters."""
    with RECORDED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    own = ("seconds", "low", "high", "samples", "again")
    swept = {}
    for row in rows:
        config = Configuration.from_json(
            json.dumps({name: json.loads(text) for name, text in row.items() if name not in own})
        )
        first = Estimate(*(float(row[name]) for name in ("seconds", "low", "high")), int(row["samples"]))
        swept[config] = SweptConfiguration(first, float(row["again"]) if row["again"] else None)
    return swept


def random_search(swept: dict[Configuration, SweptConfiguration], draws: int, best: float) -> tuple[float, float]:
    """The expected ratio to the best time for random search with `draws` different configurations, and its chance to
    come within 3 %. The search chooses by first times; the chosen one is judged by its second time if it has one.

    With all n sorted by first time, the best of d draws is rank r (from 0) with probability C(n-1-r, d-1) / C(n, d).
    """
    ranked = sorted(swept.values(), key=lambda swept_config: swept_config.first.seconds)
    count, left = len(ranked), 1.0
    expected = within = 0.0
    for rank, swept_config in enumerate(ranked):
        taken = left * draws / (count - rank) if count - rank >= draws else 0.0
        ratio = (swept_config.second or swept_config.first.seconds) / best
        expected += taken * ratio
        within += taken * (ratio <= 1.03)
        left -= taken
        if left <= 0:
            break
    return expected, within


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="make the sweep here first, resumably")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    file = read(SPACE, None, None)
    phases = file.groups[0]
    problem = phases.steps[-1].problems[0]  # type: ignore[union-attr]  # the last step is the final
    if arguments.record:
        target, policy = device_for(file, None), policy_of(file)
        judge = ConfigurationOracle(phases.problem_type, target)
        with (
            ProgressReport(Console(stderr=True)) as progress,
            Store.open(arguments.record / "measurements.sqlite") as store,
            Bench(target, policy, arguments.record / "cache", progress) as bench,
        ):
            measure = RecordedMeasure(judge, bench, store, policy, Ledger(), progress)
            record(arguments.record, phases, problem, judge, measure)
    if not RECORDED.is_file():
        parser.error("no sweep is recorded yet: make one with --record FOLDER")
    facts = json.loads(RECORDED.with_suffix(".json").read_text())
    swept = recorded()
    best = min(swept_config.second for swept_config in swept.values() if swept_config.second)
    winner = swept[Configuration.from_json(json.dumps(facts["winner"])).only(next(iter(swept)))]
    enqueues = facts["screened"] + facts["confirmed"]
    expected, chance = random_search(swept, enqueues, best)
    report = {
        **facts,
        "enqueues": enqueues,
        "best_ms": best * 1e3,
        "protocol_over_best": (winner.second or winner.first.seconds) / best,
        "random_over_best": expected,
        "random_chance_within_3_percent": chance,
        "median_over_best": sorted(swept_config.first.seconds for swept_config in swept.values())[len(swept) // 2]
        / best,
    }
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    console = Console(highlight=False, width=120)
    console.print(f"{facts['device']}, {facts['date']}: sgemm {facts['problem']}")
    console.print(f"{facts['ran']} configurations ran of {facts['combinations']}, the best {AGAIN} measured again")
    console.print(f"best                      {best * 1e3:.3f} ms")
    console.print(f"median of the space       {report['median_over_best']:.2f} x best")
    cost = f"{facts['screened']} first times and {facts['confirmed']} of finalists"
    console.print(f"protocol, {enqueues:4} enqueues   {report['protocol_over_best']:.3f} x best ({cost})")
    drawn = f"{expected:.3f} x best expected, within 3 % with chance {chance:.2f}"
    console.print(f"random,   {enqueues:4} enqueues   {drawn}")


if __name__ == "__main__":
    main()
