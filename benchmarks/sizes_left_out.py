"""How good is what the logic chooses at sizes that nobody tuned? Every third size of a run is left out in turn.

    python benchmarks/sizes_left_out.py OUT [--every 3] [--json FILE]

OUT is the folder of a `tunesmith tune`. From each of its logics every third size (the first, the second, the third of
each three, in the order of the final) is taken away; the rest chooses there by the rule for sizes that are not known.
Efficiency is the time of the fastest solution at the size over that of the chosen one, both from the run's store. What
the store has no time for was not legal there, and the next choice counts, as in the library. Times of solutions whose
sampling was stopped early, since they were clearly slower, are rough and are counted all the same.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gemm_own import store_of
from tunesmith.logic import Document, Logic, logic_files
from tunesmith.records import Outcome, Solution, UserError
from tunesmith.store import Store

Where = tuple[tuple[int, ...], tuple[int, ...]]
Times = Mapping[Where, Mapping[Solution, float]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A size, what was chosen there without it, and how good that is: 1 is the fastest that was measured. Where nothing
    that the rest knows is legal, nothing is `chosen` and the efficiency is 0."""

    type: str
    size: tuple[int, ...]
    chosen: str
    distance: float
    efficiency: float


def times_of(store: Store, problem_type: str) -> Times:
    """Seconds at each size by solution, of everything that ran there; of several times the one with most samples."""
    found: dict[Where, dict[Solution, tuple[int, float]]] = defaultdict(dict)
    for entry in store.entries(problem_type, outcomes=(Outcome.OK,)):
        if time := entry.measurement.estimate:
            here = found[entry.problem.sizes, entry.problem.leading]
            here[entry.solution] = max(here.get(entry.solution, (0, 0.0)), (time.count, time.seconds))
    return {where: {one: seconds for one, (_, seconds) in here.items()} for where, here in found.items()}


def left_out(document: Document, times: Times, every: int) -> Iterator[LeftOut]:
    """Each size once, chosen for by the logic that has none of its third."""
    for turn in range(every):
        kept = tuple(row for index, row in enumerate(document.rows) if index % every != turn)
        if not kept:
            continue
        logic = Logic(replace(document, rows=kept))
        for row in document.rows[turn::every]:
            here = times.get((row.sizes, row.leading), {})
            choice = next((one for one in logic.candidates(row.sizes, row.leading) if one.solution in here), None)
            name, distance = (choice.name, choice.distance) if choice else ("", math.inf)
            efficiency = min(here.values()) / here[choice.solution] if choice else 0.0
            yield LeftOut(document.problem_type.name, row.where, name, distance, efficiency)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder of a tuning run")
    parser.add_argument("--every", type=int, default=3, help="leave out one size of so many")
    parser.add_argument("--json", type=Path, help="write every size here too")
    asked = parser.parse_args()
    try:
        found = list(_all(asked.out, asked.every))
    except UserError as error:
        parser.error(str(error))
    Console().print(_table(found))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    return 0 if found else 1


def _all(folder: Path, every: int) -> Iterator[LeftOut]:
    with Store.read(store_of(folder)) as store:
        for path in logic_files(folder):
            document = Logic.load(path).document
            yield from left_out(document, times_of(store, document.problem_type.name), every)


def _table(found: list[LeftOut]) -> Table:
    table = Table("type", "sizes", "nothing runs", "geomean", "5th pct", "worst", "at", "chosen there")
    of: dict[str, list[LeftOut]] = defaultdict(list)
    for one in found:
        of[one.type].append(one)
    for name, ones in [*of.items(), ("all", found)]:
        ran = sorted((one for one in ones if one.chosen), key=lambda one: one.efficiency)
        if not ran:
            continue
        values = [one.efficiency for one in ran]
        low = statistics.quantiles(values, n=20)[0] if len(values) > 1 else values[0]
        geomean = math.exp(statistics.fmean(map(math.log, values)))
        figures = (f"{figure:.3f}" for figure in (geomean, low, values[0]))
        counts = str(len(ones)), str(len(ones) - len(ran))
        table.add_row(name, *counts, *figures, "x".join(map(str, ran[0].size)), ran[0].chosen)
    return table


if __name__ == "__main__":
    sys.exit(main())
