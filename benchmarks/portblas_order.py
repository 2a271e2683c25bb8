"""Do two runs of `tunesmith portblas tune ... --json` agree on which of two kernels is faster?

    tunesmith portblas tune all 256 256 256 1 10 --config default -o out/first --json > first.json
    tunesmith portblas tune all 256 256 256 1 10 --config default -o out/second --json > second.json
    python benchmarks/portblas_order.py first.json second.json

A pair of kernels counts if its 95 % intervals are apart in both runs. The output is the share of these pairs with the
same order in both runs, for each transposition and in total; then the outcomes of all combinations.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from pathlib import Path

Row = tuple[float, float]
"""The interval of a kernel's time, in seconds."""


def main(first: str, second: str) -> None:
    runs = [json.loads(Path(name).read_text(encoding="utf-8"))["transpositions"] for name in (first, second)]
    kept, decided = 0, 0
    for first_transposition, second_transposition in zip(*runs, strict=True):
        kept_here, decided_here = _order(_intervals(first_transposition), _intervals(second_transposition))
        kept, decided = kept + kept_here, decided + decided_here
        print(f"{first_transposition['name']}: {kept_here} of {decided_here} pairs keep their order")
    print(f"all: {kept} of {decided}, {kept / decided:.2%}")
    for name, run in ((first, runs[0]), (second, runs[1])):
        ends = Counter(
            row["failure"] or "measured"
            for transposition in run
            for row in transposition["rows"]
            if row["kind"] == "candidate"
        )
        print(f"{name}: " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))


def _intervals(transposition: dict) -> dict[str, Row]:
    """Intervals by configuration; combinations that are the same program count once."""
    rows = (row for row in transposition["rows"] if row["kind"] == "candidate" and row["seconds"])
    measured = {(row["seconds"], row["low"], row["high"]): row for row in rows}
    return {json.dumps(row["configuration"], sort_keys=True): (row["low"], row["high"]) for row in measured.values()}


def _order(first: dict[str, Row], second: dict[str, Row]) -> tuple[int, int]:
    """Pairs in the same order, and pairs whose intervals are apart in both runs."""
    kept = decided = 0
    for name, other_name in itertools.combinations(sorted(set(first) & set(second)), 2):
        signs = [_sign(run[name], run[other_name]) for run in (first, second)]
        decided += 0 not in signs
        kept += 0 not in signs and signs[0] == signs[1]
    return kept, decided


def _sign(first: Row, second: Row) -> int:
    return -1 if first[1] < second[0] else 1 if second[1] < first[0] else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
