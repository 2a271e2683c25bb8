"""Two lists of GEMMs by one rule: `first` to tune and fit on, `second`, with other models and seed, to judge by.

    python benchmarks/gemm_problems.py first > list.csv
    python benchmarks/gemm_problems.py second --count 80 > other.csv

A list has the columns that docs/tuning-file.md describes, with sizes as torch has them. Its families:

- decode, prefill: a layer of a model, x @ w.t(), for 1 to 64 tokens, and for 128 to 8192 tokens;
- training: the gradients of a layer's input, y @ w, and of its weights, y.t() @ x, for 1024 to 8192 tokens;
- random: M, N and K log-uniform from 16 to 8192, in three layouts; every second product's sizes are multiples of 8;
- one wave: a few tiles more than 132 multiprocessors run at once, with tiles of 128 x 128 and 128 x 256;
- vector: a matrix times one column;
- batches: attention's scores and their products with values, for one query or as many queries as keys.

A model has its published layer sizes. No product is in both lists, and none is twice in a list.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple


class Product(NamedTuple):
    """A row of a list: `batch` products of m x k by k x n; T means that an operand is stored transposed."""

    family: str
    m: int
    n: int
    k: int
    batch: int = 1
    trans_a: str = "N"
    trans_b: str = "N"


@dataclass(frozen=True, slots=True)
class Model:
    """Layer sizes of a transformer; `gated` means that the feed-forward's first layer has twice the outputs."""

    hidden: int
    feed_forward: int
    heads: int
    key_heads: int
    head: int
    gated: bool = True

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(features out, features in) of the linear layers."""
        queries, keys = self.heads * self.head, self.key_heads * self.head
        wide = self.feed_forward * (2 if self.gated else 1)
        return (
            (queries + 2 * keys, self.hidden),
            (self.hidden, queries),
            (wide, self.hidden),
            (self.hidden, self.feed_forward),
        )


@dataclass(frozen=True, slots=True)
class ListSource:
    """The seed and the models of a list."""

    seed: int
    models: Mapping[str, Model]


LISTS = {
    "first": ListSource(
        20261122,
        {
            "Llama 2 7B": Model(4096, 11008, 32, 32, 128),
            "Llama 3.1 8B": Model(4096, 14336, 32, 8, 128),
            "Llama 3.1 70B": Model(8192, 28672, 64, 8, 128),
            "Qwen2.5 1.5B": Model(1536, 8960, 12, 2, 128),
            "GPT-2 XL": Model(1600, 6400, 25, 25, 64, gated=False),
        },
    ),
    "second": ListSource(
        20261123,
        {
            "Llama 2 13B": Model(5120, 13824, 40, 40, 128),
            "Qwen2.5 7B": Model(3584, 18944, 28, 4, 128),
            "Gemma 2 9B": Model(3584, 14336, 16, 8, 256),
            "Phi-3 mini": Model(3072, 8192, 32, 32, 96),
            "BERT large": Model(1024, 4096, 16, 16, 64, gated=False),
        },
    ),
}
LOWEST, HIGHEST = 16, 8192
UNITS = 132
COUNTS = {"decode": 52, "prefill": 52, "training": 30, "random": 60, "one wave": 12, "vector": 6, "batches": 18}
"""Products of each family in a whole list."""


def log_uniform(dice: random.Random, low: int, high: int) -> int:
    return round(math.exp(dice.uniform(math.log(low), math.log(high))))


def decode(dice: random.Random, models: list[Model]) -> Iterator[Product]:
    while True:
        out, into = dice.choice(dice.choice(models).layers)
        yield Product("decode", 2 ** dice.randint(0, 6), out, into, trans_b="T")


def prefill(dice: random.Random, models: list[Model]) -> Iterator[Product]:
    """Products of prefill; every second number of tokens is a multiple of 64."""
    while True:
        for step in (64, 1):
            out, into = dice.choice(dice.choice(models).layers)
            yield Product("prefill", log_uniform(dice, 128, 8192) // step * step, out, into, trans_b="T")


def training(dice: random.Random, models: list[Model]) -> Iterator[Product]:
    while True:
        out, into = dice.choice(dice.choice(models).layers)
        tokens = 2 ** dice.randint(10, 13)
        yield Product("training", tokens, into, out)
        yield Product("training", out, into, tokens, trans_a="T")


def drawn(dice: random.Random, models: list[Model]) -> Iterator[Product]:
    while True:
        for trans_a, trans_b in (("N", "T"), ("N", "N"), ("T", "N")):
            for step in (8, 1):
                m, n, k = (-(-log_uniform(dice, LOWEST, HIGHEST) // step) * step for _ in range(3))
                yield Product("random", m, n, k, 1, trans_a, trans_b)


def one_wave(dice: random.Random, models: list[Model]) -> Iterator[Product]:
    while True:
        for height, width in ((128, 128), (128, 256)):
            tiles = UNITS + dice.randint(1, 12)
            across = max(side for side in range(1, math.isqrt(tiles) + 1) if tiles % side == 0)
            yield Product("one wave", tiles // across * height, across * width, 2 ** dice.randint(9, 13), trans_b="T")


def vector(dice: random.Random, models: list[Model]) -> Iterator[Product]:
    while True:
        for trans_a, trans_b in (("N", "T"), ("N", "N"), ("T", "N")):
            m, k = dice.choice(dice.choice(models).layers)
            yield Product("vector", m, 1, k, 1, trans_a, trans_b)


def batches(dice: random.Random, models: list[Model]) -> Iterator[Product]:
    while True:
        model = dice.choice(models)
        keys = log_uniform(dice, 64, 4096)
        for queries, length in ((1, keys), (keys, keys), (keys // 16 * 16, keys // 16 * 16)):
            together = model.heads * dice.choice((1, 4))
            # No step of a model has scores of more than 1 GiB in 16 bits.
            while together > model.heads and together * queries * length > 1 << 29:
                together //= 2
            yield Product("batches", queries, length, model.head, together, "N", "T")
            yield Product("batches", queries, model.head, length, together, "N", "N")


FAMILIES: dict[str, Callable[[random.Random, list[Model]], Iterator[Product]]] = {
    "decode": decode,
    "prefill": prefill,
    "training": training,
    "random": drawn,
    "one wave": one_wave,
    "vector": vector,
    "batches": batches,
}


def products(name: str, count: int | None = None) -> list[Product]:
    """The list of this name, or about `count` of its products: the first ones of each family, at least one each."""
    every = _every(name)
    if count is None or count == len(every):
        return every
    kept: list[Product] = []
    for family, size in COUNTS.items():
        mine = [product for product in every if product.family == family]
        kept += mine[: max(1, round(size * count / sum(COUNTS.values())))]
    return kept


def _every(name: str) -> list[Product]:
    taken = {product[1:] for product in _every("first")} if name != "first" else set()
    listed, chosen = LISTS[name], []
    for family, size in COUNTS.items():
        dice = random.Random(f"{listed.seed} {family}")
        chosen += islice(_new(FAMILIES[family](dice, list(listed.models.values())), taken), size)
    return chosen


def _new(candidates: Iterator[Product], taken: set[tuple[object, ...]]) -> Iterator[Product]:
    for product in candidates:
        if product[1:] not in taken:
            taken.add(product[1:])
            yield product


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", choices=tuple(LISTS))
    parser.add_argument("--count", type=int, help="about so many, of each family its share; all without it")
    options = parser.parse_args()
    most = sum(COUNTS.values())
    if options.count is not None and not len(COUNTS) <= options.count <= most:
        parser.error(f"--count is {options.count}; a list has {len(COUNTS)} families and {most} products")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(Product._fields)
    writer.writerows(products(options.list, options.count))


if __name__ == "__main__":
    main()
