"""How many of the nearest sizes should the logic ask at an untuned size? Fitted on one run, scored on another.

    python benchmarks/held_out.py FIRST SECOND [--json FILE]

FIRST and SECOND are folders of `tunesmith tune` with the same tuning file and different problems. The number of sizes
that are asked is `NEAREST_COUNT` of the logic. For each number, every third size of FIRST is left out in turn, as in
`sizes_left_out.py`; the number that chooses best there is the fitted one. Then FIRST's whole logic chooses for every
size of SECOND that it does not have. Efficiency is the time of the fastest solution that SECOND's run measured at a
size, over the time of the chosen solution. Beside it is the vendor's time over that of the chosen solution, if the
vendor ran.
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
class HeldOutScore:
    """Geometric means for one number of asked sizes: `fitted` is the efficiency in FIRST, `scored` that in SECOND.

    The other figures are of SECOND: fifth percentile and worst efficiency, and the vendor's time over ours. `sizes` and
    `vendors` count the sizes behind the efficiency and behind the vendor's ratio.
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
    """Logic that is created inside the context asks `count` of the nearest sizes."""
    kept = neighbours.NEAREST_COUNT
    neighbours.NEAREST_COUNT = count
    try:
        yield
    finally:
        neighbours.NEAREST_COUNT = kept


def elsewhere(document: Document, times: Times) -> Iterator[tuple[float, float | None]]:
    """Efficiency, and the vendor's time over ours, at each size that the document does not have. The efficiency is 0 if
    none of the document's solutions ran there."""
    logic, sizes_of_document = Logic(document), {(row.sizes, row.leading) for row in document.rows}
    for size_key, times_here in times.items():
        if size_key in sizes_of_document:
            continue
        chosen = next(
            (candidate.solution for candidate in logic.candidates(*size_key) if candidate.solution in times_here), None
        )
        if chosen is None:
            yield 0.0, None
            continue
        vendor = min((time for solution, time in times_here.items() if solution.kernel == VENDOR_KERNEL), default=None)
        yield min(times_here.values()) / times_here[chosen], vendor and vendor / times_here[chosen]


def scored(first: Sequence[tuple[Document, Times]], second: Sequence[Times], count: int) -> HeldOutScore:
    """The score of both runs for one number of asked sizes; `second` has the times of each type in `first`'s order.

    Raises UserError if the runs have nothing to compare.
    """
    with asking(count):
        inside = [left_size.efficiency for document, times in first for left_size in left_out(document, times, EVERY)]
        outside = [
            efficiency_and_ratio
            for (document, _), times in zip(first, second, strict=True)
            for efficiency_and_ratio in elsewhere(document, times)
        ]
    ran = sorted(efficiency for efficiency, _ in outside if efficiency)
    beside = [ratio for _, ratio in outside if ratio]
    if not ran or not any(inside):
        raise UserError("SECOND", "no size of it is one that FIRST chooses for", "give runs of the same tuning file")
    low = statistics.quantiles(ran, n=20)[0] if len(ran) > 1 else ran[0]
    over = geomean(beside) if beside else math.nan
    fitted = geomean([efficiency for efficiency in inside if efficiency])
    return HeldOutScore(count, fitted, geomean(ran), low, ran[0], over, len(ran), len(beside))


def geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def read(first: Path, second: Path) -> tuple[list[tuple[Document, Times]], list[Times]]:
    with Store.read(store_of(first)) as first_store, Store.read(store_of(second)) as second_store:
        documents = [Logic.load(path).document for path in logic_files(first)]
        names = [document.problem_type.name for document in documents]
        # A run's store may also hold measurements of another run, so the sizes of a run are those of its logic.
        sizes_of_second = {
            document.problem_type.name: {(row.sizes, row.leading) for row in document.rows}
            for document in (Logic.load(path).document for path in logic_files(second))
        }
        times_of_second = [times_of(second_store, name) for name in names]
        kept = [
            {
                size_key: times_here
                for size_key, times_here in times.items()
                if size_key in sizes_of_second.get(name, ())
            }
            for name, times in zip(names, times_of_second, strict=True)
        ]
        return [(document, times_of(first_store, name)) for document, name in zip(documents, names, strict=True)], kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="the folder of a tuning run: fitted on")
    parser.add_argument("second", type=Path, help="the folder of another: scored on")
    parser.add_argument("--json", type=Path, help="write the result here too")
    options = parser.parse_args()
    try:
        first, second = read(options.first, options.second)
        rows = [scored(first, second, count) for count in ASKED]
    except UserError as error:
        parser.error(str(error))
    best = max(rows, key=lambda row: row.fitted)
    names = ("asked", "first, left out", "second", "5th percentile", "worst", "vendor's time / ours", "")
    shown = table(*names, right=names[:-1])
    for row in rows:
        figures = (row.fitted, row.scored, row.percentile_5, row.worst, row.over_vendor)
        words = ["fitted"] * (row is best) + ["in use"] * (row.asked == neighbours.NEAREST_COUNT)
        shown.add_row(str(row.asked), *(f"{value:.3f}" for value in figures), ", ".join(words))
    Console(highlight=False, width=120).print(shown)
    if options.json:
        result = {"fitted": best.asked, "in_use": neighbours.NEAREST_COUNT, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
