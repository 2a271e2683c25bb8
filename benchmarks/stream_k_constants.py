"""Do the constants of the stream-K model, fitted on one sweep, choose as well on another?

    python benchmarks/stream_k_constants.py FIRST SECOND [--json FILE]

FIRST and SECOND are folders with the `calibration.yaml` of a kernel and the `sweep.csv` of the same kernel, as
`recorded/stream_k/run` makes them. The constants are KEPT and GONE (when the cache has lost a piece), HIDDEN (the
waiting that products hide), IN_STEP (work-groups of split-K that stay together), AS_GOOD (grids that count as equal).

For every combination of their values the calibration's costs are fitted anew to its runs, and the model chooses among
the launches that the sweep measured. Efficiency is the time of the fastest launch over that of the chosen one, as a
geometric mean over the problems. The combination that is best on FIRST is scored on SECOND, and the other way round.
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

from tunesmith.models.stream_k import costs as _stream_k_costs
from tunesmith.models.stream_k import file as stream_k_file
from tunesmith.models.stream_k import memory_demand as _stream_k_memory
from tunesmith.models.stream_k.calibration import StreamKCalibration
from tunesmith.models.stream_k.costs import counts
from tunesmith.models.stream_k.fit import fit
from tunesmith.models.stream_k.records import SharingMode, StreamKChoice, Work
from tunesmith.report.table import table


class Constants(NamedTuple):
    """One value of each."""

    kept: float
    gone: float
    hidden: float
    in_step: float
    as_good: float


VALUES = Constants(
    (0.1, 0.3, 0.5, 0.7), (0.8, 1.0, 1.5, 2.0), (0.0, 0.15, 0.3, 0.45, 0.6), (1 / 8, 1 / 4, 1 / 2, 1.0),
    (0.0, 0.005, 0.01, 0.02, 0.05),
)  # type: ignore[arg-type]  # fmt: skip
"""What is tried of each."""
FEW = 2
"""Resamples of a fit: its intervals are not looked at."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Launches of a product that a sweep measured, and the seconds of each."""

    work: Work
    choices: tuple[StreamKChoice, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    calibration: StreamKCalibration
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """Geometric means of the efficiency on both sweeps; `rule` says where the constants come from."""

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
            # m and n as torch has them: rows and columns of a row-major result.
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
    """The model has these inside."""
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
    """One for each value of `as_good`, which says which of equals to take; the other constants say what is expected."""
    with using(constants):
        room = sweep.calibration.subject.room
        costs, _, _ = fit(sweep.calibration.runs, room, np.random.default_rng(0), FEW)
        values = np.array([cost.fitted for cost in costs])
        expected = [
            [float(counts(one.work, choice, room) @ values) for choice in one.choices] for one in sweep.problems
        ]
    return [
        geomean(
            min(one.seconds) / one.seconds[chosen(one, times, slack)]
            for one, times in zip(sweep.problems, expected, strict=True)
        )
        for slack in as_good
    ]


def chosen(problem: Problem, expected: Sequence[float], as_good: float) -> int:
    """The launch that is expected to be the fastest; of stream-K's grids, the largest that is as good."""
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
    found = {}
    for kept, gone, hidden, in_step in itertools.product(*VALUES[:4]):
        tried = Constants(kept, gone, hidden, in_step, 0.0)
        scores = zip(
            efficiencies(first, tried, VALUES.as_good), efficiencies(second, tried, VALUES.as_good), strict=True
        )
        for as_good, both in zip(VALUES.as_good, scores, strict=True):
            found[tried._replace(as_good=as_good)] = both
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    first, second = read(asked.first), read(asked.second)
    scores = every_score(first, second)
    rules = {
        "in use": in_use(),
        "fitted on the first": max(scores, key=lambda constants: scores[constants][0]),
        "fitted on the second": max(scores, key=lambda constants: scores[constants][1]),
    }
    rows = [Scored(rule, constants, *scores[constants]) for rule, constants in rules.items()]
    cells = [
        (row.rule, *(f"{value:g}" for value in row.constants), f"{row.first:.3f}", f"{row.second:.3f}") for row in rows
    ]
    Console(width=120, highlight=False).print(table("constants", *Constants._fields, "first", "second", rows=cells))
    if asked.json:
        kept = {"problems": [len(first.problems), len(second.problems)], "combinations": len(scores)}
        rows_kept = [asdict(row) | {"constants": row.constants._asdict()} for row in rows]
        asked.json.write_text(json.dumps(kept | {"rows": rows_kept}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
