"""Do the constants of the stream-K model, fitted on one sweep, choose as well on another?

    python benchmarks/stream_k_constants.py FIRST SECOND [--json FILE]

FIRST and SECOND are folders with the `calibration.yaml` of a kernel and the `sweep.csv` of the same kernel, as
`recorded/stream_k/run` makes them. The constants are KEPT and GONE (when the cache has lost a piece), HIDDEN (the
waiting that products hide), IN_STEP (work-groups of split-K that stay together), AS_GOOD (grids that count as equal).

For every combination of values the calibration's costs are fitted anew to its runs, and the model chooses among the
launches that the sweep measured. Efficiency is the time of the fastest launch over that of the chosen launch, as a
geometric mean over the problems. The best combination on FIRST is scored on SECOND, and the other way round.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from tunesmith.models.stream_k import calibration_file as stream_k_file
from tunesmith.models.stream_k import costs as _stream_k_costs
from tunesmith.models.stream_k import memory_demand as _stream_k_memory
from tunesmith.models.stream_k.calibration import StreamKCalibration
from tunesmith.models.stream_k.costs import counts
from tunesmith.models.stream_k.fit import fit
from tunesmith.models.stream_k.records import SharingMode, StreamKChoice, TiledProduct
from tunesmith.report.table import table


class Constants(NamedTuple):
    """A value for each constant."""

    kept: float
    gone: float
    hidden: float
    in_step: float
    as_good: float


VALUES = Constants(
    (0.1, 0.3, 0.5, 0.7), (0.8, 1.0, 1.5, 2.0), (0.0, 0.15, 0.3, 0.45, 0.6), (1 / 8, 1 / 4, 1 / 2, 1.0),
    (0.0, 0.005, 0.01, 0.02, 0.05),
)  # type: ignore[arg-type]  # fmt: skip
"""The values that are tried for each constant."""
FEW = 2
"""Resamples of a fit. Two are enough, since its intervals are not used."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The launches of a product that a sweep measured, and their seconds."""

    work: TiledProduct
    choices: tuple[StreamKChoice, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    calibration: StreamKCalibration
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ScoredConstants:
    """Geometric means of the efficiency on both sweeps; `rule` says how the constants were chosen."""

    rule: str
    constants: Constants
    first: float
    second: float


def read(folder: Path) -> Sweep:
    (calibration,) = stream_k_file.read(folder / "calibration.yaml")
    by_sizes: dict[tuple[int, ...], list[tuple[StreamKChoice, float]]] = {}
    with (folder / "sweep.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            splits = int(row["splits"])
            choice = StreamKChoice(int(row["grid"]), 0 if splits > 1 else int(row["streamed"]), splits)
            # The file has m and n as torch has them: rows and columns of a row-major result.
            sizes = tuple(int(row[name]) for name in ("n", "m", "batch", "k"))
            by_sizes.setdefault(sizes, []).append((choice, float(row["seconds"] or row["screened_seconds"])))
    tile = calibration.subject.tile
    problems = []
    for (m, n, batch, k), launches in by_sizes.items():
        choices, seconds = zip(*launches, strict=True)
        problems.append(Problem(tile.work(m, n, batch, k), choices, seconds))
    return Sweep(calibration, tuple(problems))


@contextmanager
def using(constants: Constants) -> Iterator[None]:
    """Inside the context the model has these constants."""
    before = in_use()
    put(constants)
    try:
        yield
    finally:
        put(before)


def in_use() -> Constants:
    cache, costs = _stream_k_memory, _stream_k_costs
    return Constants(cache.KEPT, cache.GONE, cache.HIDDEN, costs.IN_STEP, costs.AS_GOOD)


def put(constants: Constants) -> None:
    _stream_k_memory.KEPT, _stream_k_memory.GONE, _stream_k_memory.HIDDEN = constants[:3]
    _stream_k_costs.IN_STEP, _stream_k_costs.AS_GOOD = constants[3:]


def efficiencies(sweep: Sweep, constants: Constants, as_good: Sequence[float]) -> list[float]:
    """An efficiency for each value of `as_good`, which decides among about equal grids.

    The other constants decide the expected times.
    """
    with using(constants):
        room = sweep.calibration.subject.room
        costs, _, _ = fit(sweep.calibration.runs, room, np.random.default_rng(0), FEW)
        values = np.array([cost.fitted for cost in costs])
        expected = [
            [float(counts(problem.work, choice, room) @ values) for choice in problem.choices]
            for problem in sweep.problems
        ]
    return [
        geomean(
            min(problem.seconds) / problem.seconds[chosen(problem, times, slack)]
            for problem, times in zip(sweep.problems, expected, strict=True)
        )
        for slack in as_good
    ]


def chosen(problem: Problem, expected: Sequence[float], as_good: float) -> int:
    """The index of the launch with the least expected time; for stream-K, of the largest grid that is as good."""
    best = min(range(len(expected)), key=expected.__getitem__)
    if problem.choices[best].mode is not SharingMode.STREAM_K:
        return best
    alike = [
        index for index, choice in enumerate(problem.choices)
        if choice.mode is SharingMode.STREAM_K and expected[index] <= expected[best] * (1 + as_good)
    ]  # fmt: skip
    return max(alike, key=lambda index: problem.choices[index].grid)


def geomean(values: Iterator[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def every_score(first: Sweep, second: Sweep) -> dict[Constants, tuple[float, float]]:
    scores_of_all = {}
    for kept, gone, hidden, in_step in itertools.product(*VALUES[:4]):
        tried = Constants(kept, gone, hidden, in_step, 0.0)
        scores = zip(
            efficiencies(first, tried, VALUES.as_good), efficiencies(second, tried, VALUES.as_good), strict=True
        )
        for as_good, efficiencies_of_both in zip(VALUES.as_good, scores, strict=True):
            scores_of_all[tried._replace(as_good=as_good)] = efficiencies_of_both
    return scores_of_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    first, second = read(options.first), read(options.second)
    scores = every_score(first, second)
    rules = {
        "in use": in_use(),
        "fitted on the first": max(scores, key=lambda constants: scores[constants][0]),
        "fitted on the second": max(scores, key=lambda constants: scores[constants][1]),
    }
    rows = [ScoredConstants(rule, constants, *scores[constants]) for rule, constants in rules.items()]
    cells = [
        (row.rule, *(f"{value:g}" for value in row.constants), f"{row.first:.3f}", f"{row.second:.3f}") for row in rows
    ]
    Console(width=120, highlight=False).print(table("constants", *Constants._fields, "first", "second", rows=cells))
    if options.json:
        counts_of_run = {"problems": [len(first.problems), len(second.problems)], "combinations": len(scores)}
        rows_kept = [asdict(row) | {"constants": row.constants._asdict()} for row in rows]
        options.json.write_text(json.dumps(counts_of_run | {"rows": rows_kept}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
