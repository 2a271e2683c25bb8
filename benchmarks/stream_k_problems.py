"""Makes a list of problems for stream-K: tiles just above whole waves, just below, and between, with a wide range of K.

    python benchmarks/stream_k_problems.py --tile 256x128 [--compute-units 132] [--count 60] > problems.csv
    tunesmith stream-k sweep problems.csv --type bf16 --tile 256x128 -o sweep

Sizes are whole tiles, as square as their number allows. The columns are those of lists of problems (m, n and k as torch
has them, so m counts rows of a row-major result). A wave has one tile for each compute unit.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Iterator, Sequence

WAVES = (0, 1, 2, 3, 5)
PARTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Positions of a remainder between one tile and all but one tile of a wave."""
DEPTHS = (128, 512, 2048, 8192, 32768, 65536)
LARGEST = 1 << 28
"""Elements of A and B together at most. Larger problems (65536 deep with more than a few tiles) are left out: a launch
on few work-groups would take seconds, and shows nothing more than a smaller one."""


Sizes = tuple[int, int, int]


def problems(tile: tuple[int, int], units: int) -> Iterator[Sizes]:
    """m, n and k; `tile` is rows by columns of the column-major D, which is columns by rows of torch's result."""
    remainders = sorted({round(1 + part * (units - 2)) for part in PARTS})
    for waves, remainder, k in itertools.product(WAVES, remainders, DEPTHS):
        tiles = waves * units + remainder
        across = max(side for side in range(1, int(tiles**0.5) + 1) if tiles % side == 0)
        m, n = tiles // across * tile[1], across * tile[0]
        if (m + n) * k <= LARGEST:
            yield m, n, k


def spread(every: Sequence[Sizes], count: int) -> list[Sizes]:
    """`count` of these sizes, in their order: each depth has its share, at even distances."""
    by_depth = sorted(every, key=lambda sizes: sizes[2])
    chosen = {by_depth[index * len(every) // count] for index in range(count)}
    return [sizes for sizes in every if sizes in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tile", required=True, help="rows x columns, such as 128x256")
    parser.add_argument("--compute-units", type=int, default=132)
    parser.add_argument("--count", type=int, help="so many problems, spread evenly over all; all without it")
    options = parser.parse_args()
    rows, columns = (int(side) for side in options.tile.split("x"))
    every = list(problems((rows, columns), options.compute_units))
    count = len(every) if options.count is None else options.count
    if not 1 <= count <= len(every):
        parser.error(f"--count is {count}; there are {len(every)} problems")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("m", "n", "k", "trans_b"))
    writer.writerows((*sizes, "T") for sizes in spread(every, count))


if __name__ == "__main__":
    main()
