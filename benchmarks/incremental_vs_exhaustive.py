"""Does the protocol find what measuring everything finds, and at what cost? On one space, against random search.

    python benchmarks/incremental_vs_exhaustive.py                    # replay the sweep in benchmarks/recorded
    python benchmarks/incremental_vs_exhaustive.py --record FOLDER    # sweep this machine first (about 20 min)

The space and its phases are in `incremental_space.yaml`. The sweep measures every legal configuration once and its best
60 again, interleaved. The replay gives the protocol those times: first times for its screens, second times where it
confirms finalists. Random search is exact: the expected second time of the best of n draws without repetition, and
the chance to come within 3 %, from the ranks of all legal configurations.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import Console

from tunesmith.bench import Bench
from tunesmith.protocol import Benchmark, Fork, Phases, Table, run
from tunesmith.records import Configuration, Estimate, Problem, Target, thaw
from tunesmith.report import ProgressReport
from tunesmith.session._file import device_for, policy_of, read
from tunesmith.session._judge import FamilyJudge
from tunesmith.session._recorded import Ledger, RecordedMeasure
from tunesmith.store import Store

HERE = Path(__file__).parent
SPACE = HERE / "incremental_space.yaml"
RECORDED = HERE / "recorded" / "incremental_sweep.csv"
AGAIN = 60


@dataclass(frozen=True, slots=True)
class Swept:
    """A configuration's first time, and its second if it was among the best."""

    first: Estimate
    second: float | None


def everything(phases: Phases) -> Iterator[Configuration]:
    """Every combination of what the phases vary."""
    varied = [step.choices for step in phases.steps if isinstance(step, Benchmark | Fork)]
    for choices in product(*varied):
        config = phases.start
        for choice in choices:
            config = config | choice
        yield config


def record(folder: Path, phases: Phases, problem: Problem, judge: FamilyJudge, measure: RecordedMeasure) -> None:
    """Measure every legal configuration and the best again; a run that was stopped goes on."""
    legal = [c for c in everything(phases) if not judge.rejections(c) and not judge.rejections_for(c, problem)]
    distinct = list({judge.identity(config): config for config in legal}.values())
    times = measure.screen([distinct], [problem], racing=True).cells
    best = sorted((c for c in distinct if (c, problem) in times), key=lambda c: times[c, problem].seconds)[:AGAIN]
    again = measure.confirm(best, [problem]).cells
    names = sorted({name for config in distinct for name in config})
    RECORDED.parent.mkdir(exist_ok=True)
    with RECORDED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "seconds", "low", "high", "samples", "again"])
        for config in distinct:
            if time_ := times.get((config, problem)):
                values = [json.dumps(thaw(config[name])) for name in names]
                second = again[config, problem].seconds if (config, problem) in again else ""
                writer.writerow([*values, time_.seconds, time_.low, time_.high, time_.count, second])
    (RECORDED.with_suffix(".json")).write_text(
        json.dumps(
            {
                "device": judge.target.name,
                "driver": judge.target.driver,
                "machine": platform.processor() or platform.machine(),
                "date": time.strftime("%Y-%m-%d"),
                "problem": str(problem),
                "combinations": sum(1 for _ in everything(phases)),
                "legal": len(legal),
                "distinct": len(distinct),
                "ran": len(times),
            },
            indent=2,
        )
        + "\n"
    )


def recorded() -> dict[Configuration, Swept]:
    """The sweep as it was written."""
    with RECORDED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    own = ("seconds", "low", "high", "samples", "again")
    swept = {}
    for row in rows:
        config = Configuration.from_json(json.dumps({n: json.loads(v) for n, v in row.items() if n not in own}))
        first = Estimate(*(float(row[name]) for name in ("seconds", "low", "high")), int(row["samples"]))
        swept[config] = Swept(first, float(row["again"]) if row["again"] else None)
    return swept


class Replay:
    """Answers the protocol from the sweep, and counts what it would have enqueued."""

    def __init__(self, swept: dict[Configuration, Swept], judge: FamilyJudge) -> None:
        self._swept = {judge.identity(config): times for config, times in swept.items()}
        self._judge = judge
        self.enqueued: set[str] = set()

    def screen(self, groups: Sequence[Sequence[Configuration]], problems: Sequence[Problem], racing: bool) -> Table:
        cells = {}
        for config in {config: None for group in groups for config in group}:
            identity = self._judge.identity(config)
            if identity in self._swept:
                self.enqueued.add(identity)
                cells.update({(config, problem): self._swept[identity].first for problem in problems})
        return Table(cells)

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> Table:
        swept = {config: self._swept[self._judge.identity(config)] for config in configs}
        return Table(paired={(c, p): ((s.second or s.first.seconds),) * 7 for c, s in swept.items() for p in problems})

    def seconds(self, config: Configuration) -> float:
        """The better-known time of a configuration."""
        swept = self._swept[self._judge.identity(config)]
        return swept.second or swept.first.seconds


def random_search(swept: dict[Configuration, Swept], draws: int, best: float) -> tuple[float, float]:
    """Expected time over the best of `draws` different configurations, each taken by its first time and judged by its
    better-known one; and the chance to come within 3 %.

    With all n sorted by first time, the best of d draws is rank r (from 0) with probability C(n-1-r, d-1) / C(n, d).
    """
    ranked = sorted(swept.values(), key=lambda s: s.first.seconds)
    count, left = len(ranked), 1.0
    expected = within = 0.0
    for rank, one in enumerate(ranked):
        taken = left * draws / (count - rank) if count - rank >= draws else 0.0
        ratio = (one.second or one.first.seconds) / best
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
        judge = FamilyJudge(phases.problem_type, target)
        with (
            ProgressReport(Console(stderr=True)) as progress,
            Store.open(arguments.record / "measurements.sqlite") as store,
            Bench(target, policy, arguments.record / "cache", progress) as bench,
        ):
            measure = RecordedMeasure(judge, bench, store, policy, Ledger(), progress)
            record(arguments.record, phases, problem, judge, measure)
    facts = json.loads(RECORDED.with_suffix(".json").read_text())
    judge = FamilyJudge(phases.problem_type, _target(facts["device"]))
    swept = recorded()
    replay = Replay(swept, judge)
    result = run(phases, replay, judge)
    winner = result.decisions[problem].winner
    best = min(one.second for one in swept.values() if one.second)
    enqueues = len(replay.enqueued)
    expected, chance = random_search(swept, enqueues, best)
    report = {
        **facts,
        "enqueues": enqueues,
        "best_ms": best * 1e3,
        "protocol_over_best": replay.seconds(winner) / best,
        "random_over_best": expected,
        "random_chance_within_3_percent": chance,
        "median_over_best": sorted(s.first.seconds for s in swept.values())[len(swept) // 2] / best,
        "winner": {name: thaw(value) for name, value in winner.items()},
    }
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    console = Console(highlight=False, width=120)
    console.print(f"{facts['device']}, {facts['driver']}, {facts['date']}: sgemm {facts['problem']}")
    console.print(f"{facts['ran']} legal configurations of {facts['combinations']}, the best {AGAIN} measured again")
    console.print(f"best                      {best * 1e3:.3f} ms")
    console.print(f"median of the space       {report['median_over_best']:.2f} x best")
    console.print(f"protocol, {enqueues:4} enqueues   {report['protocol_over_best']:.3f} x best")
    console.print(
        f"random,   {enqueues:4} enqueues   {expected:.3f} x best expected, within 3 % with chance {chance:.2f}"
    )


def _target(name: str) -> Target:
    """A stand-in with the limits of PoCL on any CPU: what was swept is legal on it."""
    return Target("OpenCL", "", name, "CPU", "", "", 2, 4096, 1 << 20, 8 << 30, 2 << 30, 32 << 20, 8, True)


if __name__ == "__main__":
    main()
