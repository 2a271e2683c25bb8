"""`matmul` on the CPU beside NumPy, by the host's clock, over 60 products: with a logic, without one, by kernels alone.

    python benchmarks/cpu_vs_numpy.py [LOGIC] [--sizes 60] [--json RESULT.json]

Both sides write the same array. Short blocks of calls of both sides alternate; which side begins alternates too. If a
kernel is launched, each block waits until no thread of this process runs: OpenBLAS's threads spin for a tenth of a
second after a call, and a kernel that shares the processors with them takes up to twice as long. A block's value is
the median of its calls without the first. The ratio is the median of NumPy's time over ours over the pairs of blocks,
and the extra time is the median of the differences. `least_ratio` is the ratio of the fastest calls of both sides,
which other processes disturb the least. `own kernels alone` is the logic without the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tunesmith.kernels import VENDOR
from tunesmith.library import Library, load
from tunesmith.toolchains.blas import numpy_blas, wait_until_threads_rest

Sizes = tuple[int, int, int]
Call = Callable[[], object]

TYPE = "Cij_Aik_Bkj_SB"
"""The type of row-major products, whose M are NumPy's columns."""
BLOCKS, FEWEST, SIZE_SECONDS = 21, 7, 3.0
"""Pairs of blocks for each product, and the fewest if they take longer than so many seconds together."""
BLOCK_SECONDS = 0.02
LONGEST_REST = 2.0
"""Seconds for which a block waits at most until the process rests."""
MOST_CALLS = 500
LARGE = 128**3
"""Products of at least so many multiplications are judged by their ratio, smaller ones by the extra time."""
OWN_FROM = 512**3
"""Products of at least so many multiplications are judged for own kernels alone."""


@dataclass(frozen=True)
class SizeTimes:
    """One product of row-major matrices, M x K by K x N: what was launched by which rule, and both sides' microseconds.
    `ratio` is NumPy's time over ours, `least_ratio` the same of the fastest calls, `extra` ours less NumPy's."""

    m: int
    n: int
    k: int
    launched: str
    rule: str
    ours: float
    numpy: float
    ratio: float
    least_ratio: float
    extra: float


def products() -> list[Sizes]:
    """The 60 products (M, N, K) by formula: squares, odd squares, skinny ones, thin ones, odd rectangles."""
    squares = [8 * 2**i for i in range(9)] + [12 * 2**i for i in range(8)]
    odd = [2**i - 1 for i in range(4, 12)] + [2**i + 1 for i in range(5, 11)]
    wide = [(m, n, n) for n in (256, 512, 1024, 2048) for m in (1, 4, 32, 100)]
    thin = [sizes for n in (128, 512, 2048) for sizes in ((n, n, 16), (n, 16, n))]
    rectangles = [(n + 1, n - 1, n // 2 + 3) for n in (64, 128, 256, 512, 1024, 1536, 2000)]
    return [*((n, n, n) for n in sorted(squares + odd)), *wide, *thin, *rectangles]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "logic", nargs="?", type=Path, help="the output folder of tunesmith tune examples/quickstart.yaml"
    )
    parser.add_argument("--sizes", type=int, default=60, help="use the first so many products")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = products()[: options.sizes]
    blas = numpy_blas()
    document: dict[str, object] = {
        "date": date.today().isoformat(),
        "numpy": np.__version__,
        "blas": str(blas),
        "blas_kernel": blas.kernel,
        "blas_threads": blas.threads,
        "variables": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(("OPENBLAS_", "POCL_"))
        },
        "load_before": os.getloadavg()[0],
    }
    cases: list[dict[str, object]] = []
    for name, opened in libraries(options.logic):
        with opened() as library, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rows = [times(library, size) for size in sizes]
        show(name, rows, str(blas))
        cases.append({"name": name, "summary": summary(rows), "rows": [asdict(row) for row in rows]})
        document |= {"load_after": os.getloadavg()[0], "cases": cases}
        if options.json:
            options.json.write_text(json.dumps(document, indent=1) + "\n")


def libraries(logic: Path | None) -> Iterator[tuple[str, Callable[..., Library]]]:
    yield "no logic", partial(Library, ())
    if logic:
        yield "logic", partial(load, logic)
        yield "own kernels alone", partial(load, logic, floor=False)


def times(library: Library, sizes: Sizes) -> SizeTimes:
    m, n, k = sizes
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    out = np.empty((m, n), np.float32)
    library.matmul(a, b, out)
    wrong = np.abs(out - a.astype(float) @ b).max() if prod(sizes) <= LARGE else 0.0
    assert wrong < 1e-3, f"{sizes}: wrong by {wrong}"
    choice = library.select(n, m, k, problem_type=TYPE)
    wait = partial(wait_until_threads_rest, LONGEST_REST) if choice.solution.kernel != VENDOR else nothing
    sides = compared(lambda: library.matmul(a, b, out), lambda: np.matmul(a, b, out=out), wait)
    return SizeTimes(m, n, k, choice.name, choice.rule.value, **sides)


def nothing() -> None:
    """What is done before a block if both sides are NumPy's BLAS."""


def compared(ours: Call, peer: Call, wait: Call) -> dict[str, float]:
    """Both sides' times as in `SizeTimes`. `wait` is called before each block."""
    sides = (ours, peer)
    counts = [calls_in_a_block(call) for call in sides]
    values: tuple[list[float], list[float]] = ([], [])
    least = [float("inf"), float("inf")]
    began = time.perf_counter()
    for number in range(BLOCKS):
        if number >= FEWEST and time.perf_counter() - began > SIZE_SECONDS:
            break
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            wait()
            seconds = block(sides[side], counts[side])[1:]
            values[side].append(statistics.median(seconds) * 1e6)
            least[side] = min(least[side], *seconds)
    pairs = list(zip(*values, strict=True))
    return {
        "ours": statistics.median(values[0]),
        "numpy": statistics.median(values[1]),
        "ratio": statistics.median(theirs / mine for mine, theirs in pairs),
        "least_ratio": least[1] / least[0],
        "extra": statistics.median(mine - theirs for mine, theirs in pairs),
    }


def block(call: Call, calls: int) -> list[float]:
    seconds = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds


def calls_in_a_block(call: Call) -> int:
    return int(max(2, min(MOST_CALLS, BLOCK_SECONDS / max(min(block(call, 3)), 1e-7))))


def summary(rows: Sequence[SizeTimes]) -> dict[str, object]:
    """Over products of at least LARGE and OWN_FROM multiplications: the worst ratio and the geometric mean. Over
    smaller ones: the most extra microseconds. And how many products own kernels made."""
    found: dict[str, object] = {"own_kernels": sum(row.launched != "VendorBlas" for row in rows)}
    for name, least in (("large", LARGE), ("from_512", OWN_FROM)):
        judged = [row for row in rows if row.m * row.n * row.k >= least]
        if judged:
            worst = min(judged, key=lambda row: row.ratio)
            found[f"{name}_count"] = len(judged)
            found[f"{name}_geomean"] = statistics.geometric_mean([row.ratio for row in judged])
            found[f"{name}_least_geomean"] = statistics.geometric_mean([row.least_ratio for row in judged])
            found[f"{name}_worst"] = worst.ratio
            found[f"{name}_least_worst"] = min(row.least_ratio for row in judged)
            found[f"{name}_worst_at"] = [worst.m, worst.n, worst.k]
    small = [row for row in rows if row.m * row.n * row.k < LARGE]
    if small:
        most = max(small, key=lambda row: row.extra)
        found |= {
            "small_count": len(small),
            "small_median_extra": statistics.median(row.extra for row in small),
            "small_most_extra": most.extra,
            "small_most_extra_at": [most.m, most.n, most.k],
        }
    return found


def show(name: str, rows: Sequence[SizeTimes], blas: str) -> None:
    heads = ("M x N x K", "launched", "rule", "ours us", "NumPy us", "NumPy / ours", "least", "extra us")
    table = Table(*heads, title=name)
    for row in rows:
        microseconds = f"{row.ours:.1f}", f"{row.numpy:.1f}"
        kernel = row.launched.removeprefix("Cij_Aik_Bkj_SB_")
        ratios = f"{row.ratio:.3f}", f"{row.least_ratio:.3f}"
        table.add_row(f"{row.m} x {row.n} x {row.k}", kernel, row.rule, *microseconds, *ratios, f"{row.extra:+.1f}")
    console = Console(highlight=False, width=140)
    console.print(table)
    for key, value in summary(rows).items():
        console.print(f"{key}: {value:.3f}" if isinstance(value, float) else f"{key}: {value}")
    console.print(f"NumPy's BLAS: {blas}")


if __name__ == "__main__":
    main()
