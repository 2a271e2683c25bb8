"""The host's time for a call of `matmul`: ours against torch.mm on a GPU, against NumPy without a GPU.

    python benchmarks/matmul_overhead.py [LOGIC --dtype float32] [--sizes 256] [--in-python] [--json RESULT.json]

Without a LOGIC, one untuned configuration of a kernel family is used for each kind of launch (`LAUNCHES`); choosing it
takes as long as choosing a tuned one. On a GPU a block is CALLS calls without a wait, and the GPU is idle before each
block; the block's time is the host's time, provided that the kernels are shorter. On a CPU a call returns when its work
is done, so the time includes the product, and small sizes show the overhead best. Blocks of both sides alternate with a
pause between them, and the first block of each is dropped. The figures are medians over the blocks, with the 2.5th and
97.5th percentile. On a GPU, calls are compiled if `tunesmith_native` is installed (`pip install ./native`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tunesmith
from tunesmith.devices import choose
from tunesmith.kernels import KERNELS
from tunesmith.library import Library
from tunesmith.logic import Document, Logic, NamedSolution, Origin, SizeRow
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, Solution

CALLS, ROUNDS, PAUSE_SECONDS = 200, 15, 0.05
SETS = 64
"""Sets of operands and results, for calls that each use other memory than the last call."""
LETTERS = {"float32": "s", "float64": "d", "float16": "h", "bfloat16": "b"}

Call = Callable[[], object]


@dataclass(frozen=True)
class UntunedKernel:
    """What is launched without a logic: a family's default configuration with a few changed parameters."""

    kernel: str
    dtype: str
    changed: Mapping[str, int | str] = field(default_factory=dict)


LAUNCHES = {
    "GPU": {
        "a kernel": UntunedKernel("CudaSimtGemm", "float32"),
        "a kernel with tensor maps": UntunedKernel("CudaWgmmaGemm", "bfloat16", {"StagingPath": "TMA"}),
        "split-K": UntunedKernel("CudaWgmmaGemm", "bfloat16", {"StagingPath": "TMA", "GlobalSplitU": 2}),
        "cuBLAS": UntunedKernel("VendorBlas", "bfloat16"),
    },
    "CPU": {"a kernel": UntunedKernel("TiledGemm", "float32")},
}
SIZES = {"GPU": "256", "CPU": "16,256"}


@dataclass(frozen=True)
class CallTimes:
    """Microseconds a call of both sides."""

    launches: str
    dtype: str
    case: str
    size: int
    ours: float
    ours_interval: tuple[float, float]
    theirs: float
    theirs_interval: tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logic", nargs="?", type=Path)
    parser.add_argument("--dtype", choices=LETTERS, default="float32", help="the logic's")
    parser.add_argument("--sizes", help="M = N = K, separated by commas")
    parser.add_argument("--in-python", action="store_true", help="without the compiled distribution")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.in_python:
        sys.modules["tunesmith_native"] = None  # type: ignore[assignment]  # importing it fails then
    torch = torch_with_gpu()
    kind, peer = ("GPU", "torch.mm") if torch else ("CPU", "numpy.matmul")
    sizes = [int(size) for size in (options.sizes or SIZES[kind]).split(",")]
    rows = []
    for name, dtype, library in libraries(options, kind):
        with library:
            rows += [
                CallTimes(name, dtype, case, size, *compared(ours, theirs, torch))
                for size in sizes
                for case, ours, theirs in cases(library, torch, size, dtype)
            ]
            device = torch.cuda.get_device_name() if torch else library.target.name
    show(rows, f"{device}, microseconds a call", peer)
    if options.json:
        facts = {"device": device, "peer": peer, "date": time.strftime("%Y-%m-%d")}
        facts |= {"torch": torch.__version__} if torch else {}
        options.json.write_text(json.dumps({**facts, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")


def libraries(options: argparse.Namespace, kind: str) -> Iterator[tuple[str, str, Library]]:
    """Each library with a name of what it launches, and its data type."""
    if options.logic:
        yield str(options.logic), options.dtype, tunesmith.load(options.logic)
        return
    for name, launches in LAUNCHES[kind].items():
        yield name, launches.dtype, untuned(launches, kind)


def untuned(launches: UntunedKernel, kind: str) -> Library:
    """A library whose logic has one untuned configuration for every transposition."""
    kernel, family = launches.kernel, KERNELS[launches.kernel]
    target = choose("CUDA" if kind == "GPU" else None, [family.language])
    origin = Origin.of(target, "none", tunesmith.__version__, "1970-01-01T00:00:00Z")
    logics = []
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            problem_type = gemm_type(LETTERS[launches.dtype], transpose_a=transpose_a, transpose_b=transpose_b)
            config = family.space(problem_type, target).defaults | Configuration(launches.changed)
            named = NamedSolution("default", Solution(problem_type, kernel, config))
            row = SizeRow((256,) * 3, (), 0, Estimate(1e-4, 1e-4, 1e-4, 1), 1.0)
            logics.append(
                (Path(f"{problem_type.name}.yaml"), Logic(Document(origin, problem_type, (named,), (row,), 0)))
            )
    return Library(logics)


def cases(library: Library, torch: Any, size: int, dtype: str) -> list[tuple[str, Call, Call]]:
    """Cases: a name, our call, and theirs on the same memory."""
    if torch:
        where = {"device": "cuda", "dtype": getattr(torch, dtype)}
        sets = [[torch.randn(size, size, **where) for _ in range(3)] for _ in range(SETS)]
        theirs, turned = torch.mm, sets[0][0].mT
    else:
        random = np.random.default_rng(0)
        sets = [[random.standard_normal((size, size)).astype(dtype) for _ in range(3)] for _ in range(SETS)]
        theirs, turned = np.matmul, sets[0][0].T
    a, b, out = sets[0]
    our_sets, their_sets = cycle(sets), cycle(sets)

    def ours_elsewhere() -> object:
        a, b, out = next(our_sets)
        return library.matmul(a, b, out)

    def theirs_elsewhere() -> object:
        a, b, out = next(their_sets)
        return theirs(a, b, out=out)

    return [
        ("a new result", lambda: library.matmul(a, b), lambda: theirs(a, b)),
        ("into out", lambda: library.matmul(a, b, out), lambda: theirs(a, b, out=out)),
        ("into out, elsewhere each time", ours_elsewhere, theirs_elsewhere),
        ("a transposed", lambda: library.matmul(turned, b, out), lambda: theirs(turned, b, out=out)),
    ]


def compared(
    ours: Call, theirs: Call, torch: Any, calls: int = CALLS
) -> tuple[float, tuple[float, float], float, tuple[float, float]]:
    """Median microseconds a call and their interval, of ours and then of theirs, from blocks of `calls` calls."""
    seconds: dict[Call, list[float]] = {ours: [], theirs: []}
    for _ in range(ROUNDS + 1):
        for call, blocks in seconds.items():
            time.sleep(PAUSE_SECONDS)
            if torch:
                torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(calls):
                call()
            blocks.append((time.perf_counter() - began) / calls * 1e6)
    our_summary, their_summary = (_summary(blocks[1:]) for blocks in seconds.values())
    return *our_summary, *their_summary


def _summary(blocks: list[float]) -> tuple[float, tuple[float, float]]:
    low, high = np.percentile(blocks, [2.5, 97.5])
    return statistics.median(blocks), (float(low), float(high))


def show(rows: list[CallTimes], title: str, peer: str) -> None:
    table = Table(
        "launches", "type", "M = N = K", "case", "ours", "interval", peer, "interval", "ours - theirs", title=title
    )
    for row in rows:
        intervals = (f"{low:.1f} - {high:.1f}" for low, high in (row.ours_interval, row.theirs_interval))
        first, second = intervals
        difference = f"{row.ours - row.theirs:.1f}"
        cells = row.launches, row.dtype, str(row.size), row.case
        table.add_row(*cells, f"{row.ours:.1f}", first, f"{row.theirs:.1f}", second, difference)
    Console(highlight=False, width=160).print(table)


def torch_with_gpu() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


if __name__ == "__main__":
    main()
