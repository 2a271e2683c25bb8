"""Whether two runs of `tunesmith portblas tune ... --json` agree on which of two kernels is the faster.

    tunesmith portblas tune all 256 256 256 1 10 --config default -o out/first --json > first.json
    tunesmith portblas tune all 256 256 256 1 10 --config default -o out/second --json > second.json
    python benchmarks/portblas_order.py first.json second.json

Pairs whose 95 % intervals overlap in one of the runs tell nothing. Of the others the share is printed that stands in
the same order in both, for each transposition and over all; then how every combination ended.
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
    kept, told = 0, 0
    for one, other in zip(*runs, strict=True):
        here, there = _order(_intervals(one), _intervals(other))
        kept, told = kept + here, told + there
        print(f"{one['name']}: {here} of {there} pairs keep their order")
    print(f"all: {kept} of {told}, {kept / told:.2%}")
    for name, run in ((first, runs[0]), (second, runs[1])):
        ends = Counter(row["failure"] or "measured" for one in run for row in one["rows"] if row["kind"] == "candidate")
        print(f"{name}: " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))


def _intervals(transposition: dict) -> dict[str, Row]:
    """By configuration; combinations that are the same program count once."""
    rows = (row for row in transposition["rows"] if row["kind"] == "candidate" and row["seconds"])
    measured = {(row["seconds"], row["low"], row["high"]): row for row in rows}
    return {json.dumps(row["configuration"], sort_keys=True): (row["low"], row["high"]) for row in measured.values()}


def _order(first: dict[str, Row], second: dict[str, Row]) -> tuple[int, int]:
    """Pairs in the same order, and pairs whose intervals are apart in both runs."""
    kept = told = 0
    for one, other in itertools.combinations(sorted(set(first) & set(second)), 2):
        signs = [_sign(run[one], run[other]) for run in (first, second)]
        told += 0 not in signs
        kept += 0 not in signs and signs[0] == signs[1]
    return kept, told


def _sign(one: Row, other: Row) -> int:
    return -1 if one[1] < other[0] else 1 if other[1] < one[0] else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
