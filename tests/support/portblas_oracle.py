"""portBLAS's generator, written down a second time and as plainly as can be, from what is known of its rules."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

Document = dict[str, list[dict[str, Any]]]

LINE = (
    "BENCH_PARAMS(::blas::gemm_memory_t::{}, ::blas::gemm_algorithm_t::{}, ::blas::gemm_batch_type_t::{}, "
    "::blas::gemm_vectorization_t::{}, {}, {}, ::blas::Tile<{}>, {}, {}, {})"
)
CODES = {"local": 0, "no_local": 1, "standard": 0, "naive": 1, "strided": 0, "interleaved": 1}
VECTOR_CODES = {"none": 0, "partial": 1, "full": 2}


def combinations(document: Document) -> tuple[list[str], list[str]]:
    """Lines and names of files, in their order."""
    made: list[tuple[Any, ...]] = []

    def add(*combination: Any) -> None:
        if combination not in made:
            made.append(combination)

    for r in document.get("local", []):
        for cl, (ir, ic), (wr, wc), (tr, tc), db, a, b, v in product(
            r["cache_line_size"],
            r["work_item_sizes"],
            r["work_group_sizes"],
            r["block_level_tiles"],
            r["double_buffer"],
            r["no_bank_conflict_a"],
            r["no_bank_conflict_b"],
            r["vectorization_size"],
        ):
            if wr % ic == 0 and wc % ir == 0 and (wr * wc) % (cl // 4) == 0:
                add("local", "standard", "strided", "full", v, cl, (ir, ic, wr, wc, tr, tc, 1, 1, 1, 1), db, a, b)
    for r in document.get("non_local", []):
        for (ir, ic), (wr, wc), v in product(r["work_item_sizes"], r["work_group_sizes"], r["vectorization_size"]):
            for kind in ("partial", "full"):
                fits = (ir % v == 0 and ic % v == 0) if kind == "partial" else (ir == v and ic == v)
                if wc * ic == wr * ir and fits:
                    tile = (ir, ic, wr, wc, 1, 1, 1, 1, 1, 1)
                    add("no_local", "standard", "strided", kind, v, 0, tile, False, False, False)
    for r in document.get("non_local_interleaved", []):
        for (ir, ic), (wr, wc), (ib, wb), v in product(
            r["work_item_sizes"], r["work_group_sizes"], r["batch_level_tiles"], r["vectorization_size"]
        ):
            if ib % v == 0 and wb * wr * wr <= 256 and ir % v == 0 and ic % v == 0:
                tile = (ir, ic, wr, wc, 1, 1, 1, 1, ib, wb)
                add("no_local", "standard", "interleaved", "full", v, 0, tile, False, False, False)
    for r in document.get("naive", []):
        for cl in r["cache_line_size"]:
            add("no_local", "naive", "strided", "none", 1, cl, (1,) * 10, False, False, False)
    return [_line(combination) for combination in made], [_name(combination) for combination in made]


def _line(combination: tuple[Any, ...]) -> str:
    memory, algorithm, batch, vectors, v, cl, tile, *flags = combination
    words = ["true" if flag else "false" for flag in flags]
    return LINE.format(memory, algorithm, batch, vectors, v, cl, ", ".join(str(n) for n in tile), *words)


def _name(combination: tuple[Any, ...]) -> str:
    memory, algorithm, batch, vectors, v, cl, tile, *flags = combination
    numbers = [CODES[memory], CODES[algorithm], CODES[batch], *(int(f) for f in flags), VECTOR_CODES[vectors], cl, v]
    return "tune_gemm_" + "_".join(str(n) for n in (*numbers, *tile)) + ".cpp"


def made_up(seed: int) -> Document:
    """A file of a few elements with values that occur, some of them twice."""
    rng = random.Random(seed)

    def some(*values: Any) -> list[Any]:
        return [rng.choice(values) for _ in range(rng.randint(1, 3))]

    def pairs(*values: int) -> list[list[int]]:
        return [[rng.choice(values), rng.choice(values)] for _ in range(rng.randint(1, 5))]

    lines, flags = (16, 32, 64, 128, 256), ("double_buffer", "no_bank_conflict_a", "no_bank_conflict_b")
    tile = {"work_item_sizes": lambda: pairs(1, 2, 3, 4, 8), "work_group_sizes": lambda: pairs(1, 2, 4, 6, 8, 16)}
    vectors = {"vectorization_size": lambda: some(1, 2, 4, 8)}
    line = {"cache_line_size": lambda: some(*lines)}
    keys = {
        "local": {
            **line,
            **tile,
            **vectors,
            "block_level_tiles": lambda: pairs(1, 2, 4),
            **{flag: lambda: some(True, False) for flag in flags},
        },
        "non_local": {**tile, **vectors},
        "non_local_interleaved": {**tile, **vectors, "batch_level_tiles": lambda: pairs(2, 4, 8)},
        "naive": line,
    }
    return {
        name: [{key: make() for key, make in fields.items()} for _ in range(rng.randint(1, 3))]
        for name, fields in rng.sample(sorted(keys.items()), rng.randint(1, len(keys)))
    }
