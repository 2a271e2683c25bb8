"""What a call of `matmul` costs the host: ours against torch.mm on a GPU, against NumPy where there is none.

    python benchmarks/matmul_overhead.py [LOGIC] [--kernel NAME] [--dtype float32] [--sizes 16,256] [--json RESULT.json]

Without a LOGIC, the default configuration of one kernel family is used as it is: the choice is as quick for it as for a
tuned one. On a GPU a block is CALLS calls that nothing waits for, so that its time by the host's clock is the host's
alone as long as kernels are shorter than that; the GPU is idle before each block. On a CPU a call returns when it is
done, so that the time of the product is part of it, and small sizes tell the most. Blocks of both sides alternate with
a pause between them, the first of each is dropped; medians over the blocks, with the 2.5th and 97.5th percentile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tunesmith
from tunesmith.devices import choose
from tunesmith.kernels import KERNELS
from tunesmith.library import Library
from tunesmith.logic import Document, Logic, Named, Origin, Row
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, Solution

CALLS, ROUNDS, PAUSE_SECONDS = 200, 15, 0.05
LETTERS = {"float32": "s", "float64": "d", "float16": "h", "bfloat16": "b"}
FAMILIES = {"GPU": "CudaSimtGemm", "CPU": "TiledGemm"}
"""Used without a logic."""

Call = Callable[[], object]


@dataclass(frozen=True)
class Measured:
    """Microseconds a call, of both sides."""

    case: str
    size: int
    ours: float
    ours_interval: tuple[float, float]
    theirs: float
    theirs_interval: tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logic", nargs="?", type=Path)
    parser.add_argument("--kernel", help="the family whose defaults are used without a logic")
    parser.add_argument("--dtype", choices=LETTERS, default="float32")
    parser.add_argument("--sizes", default="16,256", help="M = N = K, separated by commas")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch = _torch_with_gpu()
    kind, peer = ("GPU", "torch.mm") if torch else ("CPU", "numpy.matmul")
    library = tunesmith.load(given.logic) if given.logic else untuned(given.kernel or FAMILIES[kind], kind, given.dtype)
    with library:
        found = [
            measured(case, size, ours, theirs, torch)
            for size in map(int, given.sizes.split(","))
            for case, ours, theirs in cases(library, torch, size, given.dtype)
        ]
        device = library.target.name if not torch else torch.cuda.get_device_name()
    show(found, f"{given.dtype} on {device}, microseconds a call", peer)
    if given.json:
        rows = [asdict(one) for one in found]
        given.json.write_text(
            json.dumps({"device": device, "dtype": given.dtype, "peer": peer, "rows": rows}, indent=1)
        )


def untuned(kernel: str, kind: str, dtype: str) -> Library:
    """The family's defaults for every transposition, as if they had won."""
    family = KERNELS[kernel]
    target = choose("CUDA" if kind == "GPU" else None, [family.language])
    origin = Origin.of(target, "none", tunesmith.__version__, "1970-01-01T00:00:00Z")
    logics = []
    for a in (False, True):
        for b in (False, True):
            of = gemm_type(LETTERS[dtype], transpose_a=a, transpose_b=b)
            named = Named("default", Solution(of, kernel, family.space(of, target).defaults))
            row = Row((256,) * 3, (), 0, Estimate(1e-4, 1e-4, 1e-4, 1), 1.0)
            logics.append((Path(f"{of.name}.yaml"), Logic(Document(origin, of, (named,), (row,), 0))))
    return Library(logics)


def cases(library: Library, torch: Any, size: int, dtype: str) -> list[tuple[str, Call, Call]]:
    """A name, our call and theirs, on the same memory."""
    if torch:
        made = {"device": "cuda", "dtype": getattr(torch, dtype)}
        a, b, out = (torch.randn(size, size, **made) for _ in range(3))
        theirs, turned = torch.mm, a.mT
    else:
        random = np.random.default_rng(0)
        a, b, out = (random.standard_normal((size, size)).astype(dtype) for _ in range(3))
        theirs, turned = np.matmul, a.T
    return [
        ("a new result", lambda: library.matmul(a, b), lambda: theirs(a, b)),
        ("into out", lambda: library.matmul(a, b, out), lambda: theirs(a, b, out=out)),
        ("a transposed", lambda: library.matmul(turned, b, out), lambda: theirs(turned, b, out=out)),
    ]


def measured(case: str, size: int, ours: Call, theirs: Call, torch: Any) -> Measured:
    seconds: dict[Call, list[float]] = {ours: [], theirs: []}
    for _ in range(ROUNDS + 1):
        for call, blocks in seconds.items():
            time.sleep(PAUSE_SECONDS)
            if torch:
                torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(CALLS):
                call()
            blocks.append((time.perf_counter() - began) / CALLS * 1e6)
    (mine, mine_interval), (other, other_interval) = (_summary(blocks[1:]) for blocks in seconds.values())
    return Measured(case, size, mine, mine_interval, other, other_interval)


def _summary(blocks: list[float]) -> tuple[float, tuple[float, float]]:
    low, high = np.percentile(blocks, [2.5, 97.5])
    return statistics.median(blocks), (float(low), float(high))


def show(found: list[Measured], title: str, peer: str) -> None:
    table = Table("M = N = K", "case", "ours", "interval", peer, "interval", "ours - theirs", title=title)
    for one in found:
        intervals = (f"{low:.1f} - {high:.1f}" for low, high in (one.ours_interval, one.theirs_interval))
        first, second = intervals
        difference = f"{one.ours - one.theirs:.1f}"
        table.add_row(str(one.size), one.case, f"{one.ours:.1f}", first, f"{one.theirs:.1f}", second, difference)
    Console(highlight=False, width=120).print(table)


def _torch_with_gpu() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


if __name__ == "__main__":
    main()
