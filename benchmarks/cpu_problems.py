"""Two lists of GEMMs for a CPU by one rule: `first` to fit constants on, `second`, with other layers, to judge by.

    python benchmarks/cpu_problems.py first > first.csv
    python benchmarks/cpu_problems.py second --layers 40 > second.csv

A family is a layer: a weight of n x k, with n and k log-uniform from 16 to 2048, in one of two layouts (y = x w.t() as
torch stores weights, or y = x w). The weight is multiplied with x of several m, log-uniform so that m n k is between
2^15 and 2^27. Every second n, k and m is rounded up to a multiple of 16. No layer is in both lists, and no product is
twice in a list.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Iterator
from itertools import islice

LEAST, MOST = 15, 27
"""Exponents (base 2) of m n k: a product takes from microseconds to some milliseconds on a core."""
SHORTEST, LONGEST = 16, 2048
SEEDS = {"first": 17, "second": 71}
LAYERS, SIZES, MOST_LAYERS = 12, 5, 100

Row = tuple[str, int, int, int, str]


def drawn(low: float, high: float, rounds: bool, rng: random.Random) -> int:
    """A size, log-uniform between 2^low and 2^high; with `rounds` rounded up to a multiple of 16."""
    size = round(2 ** rng.uniform(low, high))
    return -(-size // 16) * 16 if rounds else size


def layers(count: int, seed: int) -> Iterator[tuple[int, int, str]]:
    """Different layers as (n, k, layout)."""
    rng, drawn_layers = random.Random(seed), set[tuple[int, int]]()
    while len(drawn_layers) < count:
        rounds = len(drawn_layers) % 2 == 0
        n, k = (drawn(4, 11, rounds, rng) for _ in range(2))
        if (n, k) not in drawn_layers:
            yield n, k, "T" if len(drawn_layers) % 4 < 2 else "N"
            drawn_layers.add((n, k))


def products(name: str, count: int, sizes: int) -> Iterator[Row]:
    other = next(seed for key, seed in SEEDS.items() if key != name)
    layers_of_other_list = {layer[:2] for layer in layers(MOST_LAYERS, other)} if name == "second" else set()
    own = (layer for layer in layers(2 * MOST_LAYERS, SEEDS[name]) if layer[:2] not in layers_of_other_list)
    for n, k, layout in islice(own, count):
        rng, chosen = random.Random(n * 4096 + k), set[int]()
        low, high = (power - (n * k).bit_length() + 1 for power in (LEAST, MOST))
        while len(chosen) < sizes:
            m = drawn(max(3, low), max(4, min(12, high)), len(chosen) % 2 == 0, rng)
            if m not in chosen:
                chosen.add(m)
                yield f"{n} x {k}", m, n, k, layout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", choices=SEEDS)
    parser.add_argument("--layers", type=int, default=LAYERS, choices=range(1, MOST_LAYERS + 1), metavar="LAYERS")
    parser.add_argument("--sizes", type=int, default=SIZES)
    options = parser.parse_args()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("family", "m", "n", "k", "trans_b"))
    writer.writerows(products(options.list, options.layers, options.sizes))


if __name__ == "__main__":
    main()
