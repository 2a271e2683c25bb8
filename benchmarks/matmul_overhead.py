"""What a call of `matmul` costs the host: ours against torch.mm on a GPU, against NumPy where there is none.

    python benchmarks/matmul_overhead.py [LOGIC --dtype float32] [--sizes 256] [--json RESULT.json]

Without a LOGIC, one configuration of a kernel family is used as it is, for each kind of launch (`LAUNCHES`): the
choice is as quick for it as for a tuned one. On a GPU a block is CALLS calls that nothing waits for, so that its time
by the host's clock is the host's alone as long as kernels are shorter than that; the GPU is idle before each block.
On a CPU a call returns when it is done, so that the time of the product is part of it, and small sizes tell the most.
Blocks of both sides alternate with a pause between them, the first of each is dropped; medians over the blocks, with
the 2.5th and 97.5th percentile.
"""

from __future__ import annotations

import argparse
import json
import statistics
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
from tunesmith.logic import Document, Logic, Named, Origin, SizeRow
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, Solution

CALLS, ROUNDS, PAUSE_SECONDS = 200, 15, 0.05
SETS = 64
"""Of operands and results, where each call goes to other memory than the last."""
LETTERS = {"float32": "s", "float64": "d", "float16": "h", "bfloat16": "b"}

Call = Callable[[], object]


@dataclass(frozen=True)
class Launches:
    """What is launched without a logic: a family's defaults, but for a few parameters."""

    kernel: str
    dtype: str
    changed: Mapping[str, int | str] = field(default_factory=dict)


LAUNCHES = {
    "GPU": {
        "a kernel": Launches("CudaSimtGemm", "float32"),
        "a kernel with tensor maps": Launches("CudaWgmmaGemm", "bfloat16", {"StagingPath": "TMA"}),
        "split-K": Launches("CudaWgmmaGemm", "bfloat16", {"StagingPath": "TMA", "GlobalSplitU": 2}),
        "cuBLAS": Launches("VendorBlas", "bfloat16"),
    },
    "CPU": {"a kernel": Launches("TiledGemm", "float32")},
}
SIZES = {"GPU": "256", "CPU": "16,256"}


@dataclass(frozen=True)
class Measured:
    """Microseconds a call, of both sides."""

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
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch = torch_with_gpu()
    kind, peer = ("GPU", "torch.mm") if torch else ("CPU", "numpy.matmul")
    sizes = [int(size) for size in (given.sizes or SIZES[kind]).split(",")]
    found = []
    for name, dtype, library in libraries(given, kind):
        with library:
            found += [
                Measured(name, dtype, case, size, *compared(ours, theirs, torch))
                for size in sizes
                for case, ours, theirs in cases(library, torch, size, dtype)
            ]
            device = torch.cuda.get_device_name() if torch else library.target.name
    show(found, f"{device}, microseconds a call", peer)
    if given.json:
        rows = [asdict(one) for one in found]
        given.json.write_text(json.dumps({"device": device, "peer": peer, "rows": rows}, indent=1))


def libraries(given: argparse.Namespace, kind: str) -> Iterator[tuple[str, str, Library]]:
    """What each launches, its data type, and itself."""
    if given.logic:
        yield str(given.logic), given.dtype, tunesmith.load(given.logic)
        return
    for name, launches in LAUNCHES[kind].items():
        yield name, launches.dtype, untuned(launches, kind)


def untuned(launches: Launches, kind: str) -> Library:
    """One configuration for every transposition, as if it had won."""
    kernel, family = launches.kernel, KERNELS[launches.kernel]
    target = choose("CUDA" if kind == "GPU" else None, [family.language])
    origin = Origin.of(target, "none", tunesmith.__version__, "1970-01-01T00:00:00Z")
    logics = []
    for a in (False, True):
        for b in (False, True):
            of = gemm_type(LETTERS[launches.dtype], transpose_a=a, transpose_b=b)
            config = family.space(of, target).defaults | Configuration(launches.changed)
            named = Named("default", Solution(of, kernel, config))
            row = SizeRow((256,) * 3, (), 0, Estimate(1e-4, 1e-4, 1e-4, 1), 1.0)
            logics.append((Path(f"{of.name}.yaml"), Logic(Document(origin, of, (named,), (row,), 0))))
    return Library(logics)


def cases(library: Library, torch: Any, size: int, dtype: str) -> list[tuple[str, Call, Call]]:
    """A name, our call and theirs, on the same memory."""
    if torch:
        made = {"device": "cuda", "dtype": getattr(torch, dtype)}
        sets = [[torch.randn(size, size, **made) for _ in range(3)] for _ in range(SETS)]
        theirs, turned = torch.mm, sets[0][0].mT
    else:
        random = np.random.default_rng(0)
        sets = [[random.standard_normal((size, size)).astype(dtype) for _ in range(3)] for _ in range(SETS)]
        theirs, turned = np.matmul, sets[0][0].T
    a, b, out = sets[0]
    mine, others = cycle(sets), cycle(sets)

    def ours_elsewhere() -> object:
        a, b, out = next(mine)
        return library.matmul(a, b, out)

    def theirs_elsewhere() -> object:
        a, b, out = next(others)
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
    """Microseconds a call and their interval, of ours and of theirs, in blocks of so many calls."""
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
    mine, other = (_summary(blocks[1:]) for blocks in seconds.values())
    return *mine, *other


def _summary(blocks: list[float]) -> tuple[float, tuple[float, float]]:
    low, high = np.percentile(blocks, [2.5, 97.5])
    return statistics.median(blocks), (float(low), float(high))


def show(found: list[Measured], title: str, peer: str) -> None:
    table = Table(
        "launches", "type", "M = N = K", "case", "ours", "interval", peer, "interval", "ours - theirs", title=title
    )
    for one in found:
        intervals = (f"{low:.1f} - {high:.1f}" for low, high in (one.ours_interval, one.theirs_interval))
        first, second = intervals
        difference = f"{one.ours - one.theirs:.1f}"
        what = one.launches, one.dtype, str(one.size), one.case
        table.add_row(*what, f"{one.ours:.1f}", first, f"{one.theirs:.1f}", second, difference)
    Console(highlight=False, width=160).print(table)


def torch_with_gpu() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


if __name__ == "__main__":
    main()
