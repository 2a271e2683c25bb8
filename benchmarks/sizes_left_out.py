"""How good are the logic's choices at untuned sizes? Every third size of a run is left out in turn.

    python benchmarks/sizes_left_out.py OUT [--every 3] [--json FILE]

OUT is the folder of a `tunesmith tune`. Every third size of each logic (the first, the second, then the third of each
three, in the order of the final step) is left out; the remaining logic chooses there as for an unknown size. Efficiency
is the time of the fastest solution at the size over the time of the chosen one, both from the run's store. A solution
without a time in the store was not legal there, and the next choice counts, as in the library. Solutions whose sampling
was stopped early, since they were clearly slower, count with their rough times.
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

SizeKey = tuple[tuple[int, ...], tuple[int, ...]]
Times = Mapping[SizeKey, Mapping[Solution, float]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A left-out size, the solution that the remaining logic chose, and its efficiency: 1 for the fastest measured one.

    If none of the remaining solutions is legal, `chosen` is empty and the efficiency is 0.
    """

    type: str
    size: tuple[int, ...]
    chosen: str
    distance: float
    efficiency: float


def times_of(store: Store, problem_type: str) -> Times:
    """Seconds by size and solution, of everything that ran; of several times, the one with the most samples."""
    found: dict[SizeKey, dict[Solution, tuple[int, float]]] = defaultdict(dict)
    for entry in store.entries(problem_type, outcomes=(Outcome.OK,)):
        if time := entry.measurement.estimate:
            times_here = found[entry.problem.sizes, entry.problem.leading]
            times_here[entry.solution] = max(times_here.get(entry.solution, (0, 0.0)), (time.count, time.seconds))
    return {
        size_key: {solution: seconds for solution, (_, seconds) in times_here.items()}
        for size_key, times_here in found.items()
    }


def left_out(document: Document, times: Times, every: int) -> Iterator[LeftOut]:
    """Each size once, with the choice of the logic that lacks this size's third."""
    for turn in range(every):
        kept = tuple(row for index, row in enumerate(document.rows) if index % every != turn)
        if not kept:
            continue
        logic = Logic(replace(document, rows=kept))
        for row in document.rows[turn::every]:
            times_here = times.get((row.sizes, row.leading), {})
            choice = next(
                (
                    choice_here
                    for choice_here in logic.candidates(row.sizes, row.leading)
                    if choice_here.solution in times_here
                ),
                None,
            )
            name, distance = (choice.name, choice.distance) if choice else ("", math.inf)
            efficiency = min(times_here.values()) / times_here[choice.solution] if choice else 0.0
            yield LeftOut(document.problem_type.name, row.where, name, distance, efficiency)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder of a tuning run")
    parser.add_argument("--every", type=int, default=3, help="leave out one size of so many")
    parser.add_argument("--json", type=Path, help="write every size here too")
    options = parser.parse_args()
    try:
        found = list(_all(options.out, options.every))
    except UserError as error:
        parser.error(str(error))
    Console().print(_table(found))
    if options.json:
        options.json.write_text(json.dumps([asdict(left) for left in found], indent=1) + "\n", encoding="utf-8")
    return 0 if found else 1


def _all(folder: Path, every: int) -> Iterator[LeftOut]:
    with Store.read(store_of(folder)) as store:
        for path in logic_files(folder):
            document = Logic.load(path).document
            yield from left_out(document, times_of(store, document.problem_type.name), every)


def _table(found: list[LeftOut]) -> Table:
    table = Table("type", "sizes", "nothing runs", "geomean", "5th pct", "worst", "at", "chosen there")
    by_type: dict[str, list[LeftOut]] = defaultdict(list)
    for left in found:
        by_type[left.type].append(left)
    for name, left_of_type in [*by_type.items(), ("all", found)]:
        ran = sorted((left for left in left_of_type if left.chosen), key=lambda left: left.efficiency)
        if not ran:
            continue
        values = [left.efficiency for left in ran]
        low = statistics.quantiles(values, n=20)[0] if len(values) > 1 else values[0]
        geomean = math.exp(statistics.fmean(map(math.log, values)))
        figures = (f"{figure:.3f}" for figure in (geomean, low, values[0]))
        counts = str(len(left_of_type)), str(len(left_of_type) - len(ran))
        table.add_row(name, *counts, *figures, "x".join(map(str, ran[0].size)), ran[0].chosen)
    return table


if __name__ == "__main__":
    sys.exit(main())
