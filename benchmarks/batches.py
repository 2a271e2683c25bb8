"""Batches that no problem type serves: ours against NumPy on a CPU, against torch.bmm on a GPU.

    python benchmarks/batches.py [--json RESULT.json]

The library has a logic for single matrices alone: one untuned configuration, which is not asked for a batch. On a CPU
the batch is 20,000 products of 3 x 3 x 3 in single precision; on a GPU, where there is one, also 192 products of
197 x 197 x 64 (rows, columns, length of the sums) in bfloat16, the attention of a vision model. Each line has its
median microseconds a call, with the 2.5th and 97.5th percentile over blocks of both sides that alternate
(`matmul_overhead.py`). A call on a CPU ends with the work; on a GPU a block ends when the GPU has done it all, so that
the longer one of the host's time and the kernels' shows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from matmul_overhead import Call, Launches, compared, torch_with_gpu, untuned
from tunesmith.library import Library

CALLS = {"CPU": 5, "GPU": 50}
"""Of a block: 20,000 small products take NumPy some ten milliseconds."""


@dataclass(frozen=True)
class Batch:
    """`count` products of M x K by K x N, and what a logic for single matrices would launch."""

    count: int
    m: int
    n: int
    k: int
    launches: Launches


BATCHES = {
    "CPU": Batch(20_000, 3, 3, 3, Launches("TiledGemm", "float32")),
    "GPU": Batch(192, 197, 197, 64, Launches("CudaWgmmaGemm", "bfloat16")),
}


@dataclass(frozen=True)
class Measured:
    """Microseconds a call, of both sides; `ratio` is theirs over ours."""

    device: str
    batch: str
    peer: str
    ours: float
    ours_interval: tuple[float, float]
    theirs: float
    theirs_interval: tuple[float, float]
    ratio: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch = torch_with_gpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that no logic is for them
        found = [measured(kind, torch) for kind in (("CPU", "GPU") if torch else ("CPU",))]
    show(found)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in found], indent=1))


def measured(kind: str, torch: Any) -> Measured:
    batch = BATCHES[kind]
    with untuned(batch.launches, kind) as library:
        if kind == "CPU":
            ours, theirs, peer, gpu = *on_cpu(library, batch), "numpy.matmul", None
        else:
            ours, theirs, peer, gpu = *on_gpu(library, batch, torch), "torch.bmm", torch
        mine, mine_interval, other, other_interval = compared(ours, theirs, gpu, CALLS[kind])
        name = torch.cuda.get_device_name() if gpu else library.target.name
    shape = f"{batch.count} x {batch.m} x {batch.n} x {batch.k} {batch.launches.dtype}"
    return Measured(name, shape, peer, mine, mine_interval, other, other_interval, other / mine)


def on_cpu(library: Library, batch: Batch) -> tuple[Call, Call]:
    """Our call and NumPy's, on the same memory. Raises AssertionError where they differ."""
    random = np.random.default_rng(0)
    a = random.standard_normal((batch.count, batch.m, batch.k)).astype(batch.launches.dtype)
    b = random.standard_normal((batch.count, batch.k, batch.n)).astype(batch.launches.dtype)
    np.testing.assert_allclose(library.matmul(a, b), np.matmul(a, b), rtol=1e-4, atol=1e-4)
    return lambda: library.matmul(a, b), lambda: np.matmul(a, b)


def on_gpu(library: Library, batch: Batch, torch: Any) -> tuple[Call, Call]:
    """Our call and torch's; the last one of a block waits for the GPU. Raises AssertionError where they differ."""
    made = {"device": "cuda", "dtype": getattr(torch, batch.launches.dtype)}
    a, b = torch.randn(batch.count, batch.m, batch.k, **made), torch.randn(batch.count, batch.k, batch.n, **made)
    torch.testing.assert_close(library.matmul(a, b), torch.bmm(a, b))

    def waited(call: Call) -> Call:
        """`compared` makes blocks of so many calls."""
        left = CALLS["GPU"]

        def counted() -> object:
            nonlocal left
            found = call()
            left -= 1
            if not left:
                left = CALLS["GPU"]
                torch.cuda.synchronize()
            return found

        return counted

    return waited(lambda: library.matmul(a, b)), waited(lambda: torch.bmm(a, b))


def show(found: list[Measured]) -> None:
    table = Table("device", "batch x M x N x K", "ours", "interval", "peer", "theirs", "interval", "theirs / ours")
    for row in found:
        first, second = (f"{low:.1f} - {high:.1f}" for low, high in (row.ours_interval, row.theirs_interval))
        table.add_row(
            *(row.device, row.batch, f"{row.ours:.1f}", first, row.peer, f"{row.theirs:.1f}", second),
            f"{row.ratio:.3f}",
        )
    Console(highlight=False, width=160).print(table)


if __name__ == "__main__":
    main()
