"""How many of the nearest sizes should be asked at a size that nobody tuned? Fitted on one run, scored on another.

    python benchmarks/held_out.py FIRST SECOND [--json FILE]

FIRST and SECOND are folders of `tunesmith tune` with the same tuning file and other problems. For each number of sizes
that are asked (`SPEAK` of the logic): in FIRST every third size is left out in turn, as `sizes_left_out.py` does, and
the number that chooses best there is the fitted one. Then FIRST's whole logic chooses for every size of SECOND, by the
rule for sizes that are not known. Efficiency is the time of the fastest solution that SECOND's run measured at the
size, over that of the chosen one; beside it the vendor's time over that of the chosen one, where it ran.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from gemm_own import store_of
from gemm_ratios import VENDOR_KERNEL
from sizes_left_out import Times, left_out, times_of
from tunesmith.logic import Document, Logic, logic_files, neighbours
from tunesmith.records import UserError
from tunesmith.report.table import table
from tunesmith.store import Store

ASKED = tuple(range(1, 9))
EVERY = 3


@dataclass(frozen=True, slots=True)
class Scored:
    """Geometric means: efficiency in the run that was fitted on, then that in the other one, with its fifth percentile
    and its worst, and the vendor's time over ours there. `sizes` and `vendors` are how many of the other run counted.
    """

    asked: int
    fitted: float
    scored: float
    percentile_5: float
    worst: float
    over_vendor: float
    sizes: int
    vendors: int


@contextmanager
def asking(count: int) -> Iterator[None]:
    """Logic that is made inside asks so many of the nearest sizes."""
    kept = neighbours.SPEAK
    neighbours.SPEAK = count
    try:
        yield
    finally:
        neighbours.SPEAK = kept


def elsewhere(document: Document, times: Times) -> Iterator[tuple[float, float | None]]:
    """At each size that the document does not have: efficiency, and the vendor's time over ours. 0 where nothing that
    it knows ran."""
    logic, known = Logic(document), {(row.sizes, row.leading) for row in document.rows}
    for where, here in times.items():
        if where in known:
            continue
        chosen = next((one.solution for one in logic.candidates(*where) if one.solution in here), None)
        if chosen is None:
            yield 0.0, None
            continue
        vendor = min((time for one, time in here.items() if one.kernel == VENDOR_KERNEL), default=None)
        yield min(here.values()) / here[chosen], vendor and vendor / here[chosen]


def scored(first: Sequence[tuple[Document, Times]], second: Sequence[Times], count: int) -> Scored:
    """Both runs, each type's times in the same order as the documents. UserError where they have nothing to compare."""
    with asking(count):
        inside = [one.efficiency for document, times in first for one in left_out(document, times, EVERY)]
        outside = [
            one for (document, _), times in zip(first, second, strict=True) for one in elsewhere(document, times)
        ]
    ran = sorted(efficiency for efficiency, _ in outside if efficiency)
    beside = [ratio for _, ratio in outside if ratio]
    if not ran or not any(inside):
        raise UserError("SECOND", "no size of it is one that FIRST chooses for", "give runs of the same tuning file")
    low = statistics.quantiles(ran, n=20)[0] if len(ran) > 1 else ran[0]
    over = geomean(beside) if beside else math.nan
    return Scored(
        count, geomean([one for one in inside if one]), geomean(ran), low, ran[0], over, len(ran), len(beside)
    )


def geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def read(first: Path, second: Path) -> tuple[list[tuple[Document, Times]], list[Times]]:
    with Store.read(store_of(first)) as mine, Store.read(store_of(second)) as other:
        documents = [Logic.load(path).document for path in logic_files(first)]
        names = [document.problem_type.name for document in documents]
        # The store of a run may hold measurements of another: only what the run's own logic has are its sizes.
        theirs = {
            document.problem_type.name: {(row.sizes, row.leading) for row in document.rows}
            for document in (Logic.load(path).document for path in logic_files(second))
        }
        there = [times_of(other, name) for name in names]
        kept = [
            {where: here for where, here in times.items() if where in theirs.get(name, ())}
            for name, times in zip(names, there, strict=True)
        ]
        return [(one, times_of(mine, name)) for one, name in zip(documents, names, strict=True)], kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="the folder of a tuning run: fitted on")
    parser.add_argument("second", type=Path, help="the folder of another: scored on")
    parser.add_argument("--json", type=Path, help="write the result here too")
    asked = parser.parse_args()
    try:
        first, second = read(asked.first, asked.second)
        rows = [scored(first, second, count) for count in ASKED]
    except UserError as error:
        parser.error(str(error))
    best = max(rows, key=lambda one: one.fitted)
    names = ("asked", "first, left out", "second", "5th percentile", "worst", "vendor's time / ours", "")
    shown = table(*names, right=names[:-1])
    for one in rows:
        figures = (one.fitted, one.scored, one.percentile_5, one.worst, one.over_vendor)
        words = ["fitted"] * (one is best) + ["in use"] * (one.asked == neighbours.SPEAK)
        shown.add_row(str(one.asked), *(f"{value:.3f}" for value in figures), ", ".join(words))
    Console(highlight=False, width=120).print(shown)
    if asked.json:
        result = {"fitted": best.asked, "in_use": neighbours.SPEAK, "rows": [asdict(one) for one in rows]}
        asked.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
