"""Does the guided search find the best kernel of a portBLAS list with a tenth of the measurements?

    python benchmarks/portblas_guided.py benchmarks/recorded/SWEEP.csv                # replay a recorded sweep
    python benchmarks/portblas_guided.py SWEEP.csv --record out/portblas --type NAME  # make it from a run's folder

A sweep is a CSV with a row for each configuration: its parameters (as JSON), the median time in seconds with the ends
of its 95 % interval, and the number of samples. A JSON beside it says where it was made. A sweep has the measurements
of `tunesmith portblas tune` without `--guided`. The replay gives these times to the search, once for each seed, and to
random search with the same number of measurements. A search's result is the fastest configuration that it asked for.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tunesmith.formats.portblas.results import combination_of
from tunesmith.kernels import family_for
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, Outcome, Problem, Value, thaw
from tunesmith.search import STRATEGIES, Candidates, Strategy
from tunesmith.store import FILE_NAME, FULL, Store, StoreEntry

TIMES = ("seconds", "low", "high", "samples")
NEAR = 1.03
"""The largest ratio to the sweep's best time at which a result counts as found."""

ANY = Problem(gemm_type(), (1, 1, 1))
"""The problem under which the search gets a sweep's times; the search does not look at it."""

Sweep = Mapping[Configuration, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """The results of a strategy over all seeds, as ratios to the sweep's best time."""

    strategy: str
    measurements: int
    median: float
    worst: float
    share_near: float
    seconds_a_run: float


def described(config: Configuration) -> Mapping[str, Value]:
    """The derived values by which the session describes a configuration to the model."""
    return family_for("GEMM", config).derived(config)


def replayed(strategy: Strategy, sweep: Sweep, count: int, seed: int) -> float:
    """The best time that a search finds with `count` configurations."""
    candidates = replace(Candidates.of_list(sweep), trials=count, describe=described)
    search = strategy.start(candidates, np.random.default_rng(seed))
    while batch := search.ask():
        times = {config: Estimate(sweep[config], sweep[config], sweep[config], 1) for config in batch.configurations}
        search.tell(batch, {config: {ANY: time} for config, time in times.items()})
    return min(sweep[config] for config in search.told)


def figures(sweep: Sweep, seeds: int, report: Callable[[str], None] = lambda text: None) -> list[Figure]:
    """The figures of guided and random search over the same seeds, with a tenth of the sweep."""
    strategies = {"guided": STRATEGIES["surrogate"], "random": STRATEGIES["random"]}
    best, count = min(sweep.values()), strategies["guided"].count(len(sweep), None)
    found = []
    for name, strategy in strategies.items():
        began = time.perf_counter()
        ratios = []
        for seed in range(seeds):
            ratios.append(replayed(strategy, sweep, count, seed) / best)
            report(f"{name} {seed + 1}/{seeds}: {ratios[-1]:.3f}")
        near = sum(ratio <= NEAR for ratio in ratios) / seeds
        each = (time.perf_counter() - began) / seeds
        found.append(Figure(name, count, statistics.median(ratios), max(ratios), near, each))
    return found


def read_sweep(path: Path) -> dict[Configuration, float]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    sweep = {}
    for row in rows:
        values = {name: json.loads(text) for name, text in row.items() if name not in TIMES}
        sweep[Configuration.from_json(json.dumps(values))] = float(row["seconds"])
    return sweep


def write_sweep(path: Path, sweep: Mapping[Configuration, Sequence[float]], facts: Mapping[str, object]) -> None:
    """`sweep` has the values of `TIMES` for each configuration."""
    names = list(next(iter(sweep)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *TIMES])
        for config, times in sweep.items():
            writer.writerow([*(json.dumps(thaw(config[name])) for name in names), *times])
    path.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")


def record(folder: Path, path: Path, problem_type: str) -> None:
    """Write a sweep from a run's store: all portBLAS kernels that ran on the problem with the most measurements."""
    with Store.read(folder / FILE_NAME) as store:
        entries = [entry for entry in store.entries(problem_type, FULL, (Outcome.OK,)) if entry.round == FULL]
    ours = [entry for entry in entries if combination_of(entry.solution.configuration)]
    if not ours:
        raise SystemExit(f"{folder}: no kernel of portBLAS's has run there")
    counts = Counter((entry.problem, entry.target) for entry in ours)
    (problem, target), _ = counts.most_common(1)[0]
    chosen: list[StoreEntry] = [entry for entry in ours if (entry.problem, entry.target) == (problem, target)]
    sweep = {entry.solution.configuration: _times(entry) for entry in chosen}
    facts = {
        "device": target.name,
        "driver": target.driver,
        "toolchain": chosen[-1].toolchain,
        "date": time.strftime("%Y-%m-%d", time.gmtime(chosen[-1].measurement.started)),
        "problem_type": problem.type.name,
        "sizes": list(problem.sizes),
        "flops": OPERATIONS["GEMM"].work(problem),
        "configurations": len(sweep),
    }
    write_sweep(path, sweep, facts)


def _times(entry: StoreEntry) -> tuple[float, float, float, int]:
    estimate = entry.measurement.estimate
    assert estimate is not None
    return estimate.seconds, estimate.low, estimate.high, estimate.count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path, metavar="SWEEP.csv", help="a recorded sweep")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="make it from a run's folder first")
    parser.add_argument("--type", default="", metavar="NAME", help="the problem type to record, such as Cij_Aik_Bkj_SB")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.record, arguments.sweep, arguments.type)
    if not arguments.sweep.is_file():
        parser.error(f"{arguments.sweep}: no such sweep; make it with --record FOLDER")
    sweep = read_sweep(arguments.sweep)
    beside = arguments.sweep.with_suffix(".json")
    facts = json.loads(beside.read_text()) if beside.is_file() else {}
    errors = Console(stderr=True, highlight=False)
    found = figures(sweep, arguments.seeds, errors.print)
    best = min(sweep.values())
    if arguments.json:
        document = {**facts, "best_seconds": best, "seeds": arguments.seeds}
        strategies = [{name: getattr(figure, name) for name in Figure.__slots__} for figure in found]
        print(json.dumps({**document, "strategies": strategies}, indent=2))
        return
    console = Console(highlight=False, width=120)
    where = f"{facts['device']}, {facts['date']}: {facts['problem_type']} {facts['sizes']}" if facts else "no facts"
    console.print(where)
    median = statistics.median(sweep.values()) / best
    near = sum(seconds <= NEAR * best for seconds in sweep.values())
    console.print(
        f"{len(sweep)} configurations, best {best * 1e3:.4g} ms, median {median:.2f} x best, {near} within 3 % of it"
    )
    table = Table("search", "measurements", "median / best", "worst / best", "seeds within 3 %", "s a run", box=None)
    for figure in found:
        numbers = (
            f"{figure.median:.3f}",
            f"{figure.worst:.3f}",
            f"{figure.share_near:.0%}",
            f"{figure.seconds_a_run:.1f}",
        )
        table.add_row(figure.strategy, str(figure.measurements), *numbers)
    console.print(table)


if __name__ == "__main__":
    main()
