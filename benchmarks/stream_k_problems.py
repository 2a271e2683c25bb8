"""Problems that stream-K is for: tiles just above whole waves, just below, and between, over a wide range of K.

    python benchmarks/stream_k_problems.py --tile 128x256 [--compute-units 132] > problems.csv
    tunesmith stream-k sweep problems.csv --type bf16 --tile 128x256 -o sweep

Sizes are whole tiles, as square as their number allows, in the columns that lists of problems have (m, n and k as torch
has them, so that m counts rows of a row-major result). Waves are of one tile for each compute unit.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Iterator

WAVES = (0, 1, 2, 3, 5)
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Where a remainder lies between one tile and all but one of a wave."""
DEPTHS = (128, 512, 2048, 8192, 32768, 65536)
LARGEST = 1 << 30
"""Elements of A and B together; what is larger (65536 deep and a prime number of tiles long) is left out."""


def problems(tile: tuple[int, int], units: int) -> Iterator[tuple[int, int, int]]:
    """m, n and k; `tile` is rows by columns of the column-major D, which is columns by rows of torch's result."""
    remainders = sorted({round(1 + part * (units - 2)) for part in PARTS})
    for waves, remainder, k in itertools.product(WAVES, remainders, DEPTHS):
        tiles = waves * units + remainder
        across = max(side for side in range(1, int(tiles**0.5) + 1) if tiles % side == 0)
        m, n = tiles // across * tile[1], across * tile[0]
        if (m + n) * k <= LARGEST:
            yield m, n, k


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tile", required=True, help="rows x columns, such as 128x256")
    parser.add_argument("--compute-units", type=int, default=132)
    asked = parser.parse_args()
    rows, columns = (int(side) for side in asked.tile.split("x"))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("m", "n", "k", "trans_b"))
    writer.writerows((*sizes, "T") for sizes in problems((rows, columns), asked.compute_units))


if __name__ == "__main__":
    main()
