"""Batches without a problem type in the logic: our time against NumPy's on a CPU, against torch.bmm's on a GPU.

    python benchmarks/batches.py [--json RESULT.json]

The library has a logic for single matrices only: one untuned configuration, which the library does not use for a batch.
On a CPU the batch is 20,000 products of 3 x 3 x 3 in single precision. On a GPU, if there is one, the batch is also 192
products of 197 x 197 x 64 (rows, columns, length of the sums) in bfloat16, the attention of a vision model. Each line
has the median microseconds a call, with the 2.5th and 97.5th percentile over alternating blocks of both sides
(`matmul_overhead.py`). On a CPU a call ends when its work is done. On a GPU a block ends when the GPU has done all its
work, so the time is the longer of the host's and the kernels' times.
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

from matmul_overhead import Call, UntunedKernel, compared, torch_with_gpu, untuned
from tunesmith.library import Library

CALLS = {"CPU": 5, "GPU": 50}
"""Calls of a block. On a CPU there are few, since NumPy takes some ten milliseconds for 20,000 small products."""


@dataclass(frozen=True)
class Batch:
    """`count` products of M x K by K x N, and the launch that a logic for single matrices would make."""

    count: int
    m: int
    n: int
    k: int
    launches: UntunedKernel


BATCHES = {
    "CPU": Batch(20_000, 3, 3, 3, UntunedKernel("TiledGemm", "float32")),
    "GPU": Batch(192, 197, 197, 64, UntunedKernel("CudaWgmmaGemm", "bfloat16")),
}


@dataclass(frozen=True)
class BatchTimes:
    """Microseconds a call of both sides; `ratio` is theirs over ours."""

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
    options = parser.parse_args()
    torch = torch_with_gpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns that it has no logic for these products
        rows = [measured(kind, torch) for kind in (("CPU", "GPU") if torch else ("CPU",))]
    show(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def measured(kind: str, torch: Any) -> BatchTimes:
    batch = BATCHES[kind]
    with untuned(batch.launches, kind) as library:
        if kind == "CPU":
            ours, theirs, peer, gpu = *on_cpu(library, batch), "numpy.matmul", None
        else:
            ours, theirs, peer, gpu = *on_gpu(library, batch, torch), "torch.bmm", torch
        our_median, our_interval, their_median, their_interval = compared(ours, theirs, gpu, CALLS[kind])
        name = torch.cuda.get_device_name() if gpu else library.target.name
    shape = f"{batch.count} x {batch.m} x {batch.n} x {batch.k} {batch.launches.dtype}"
    return BatchTimes(
        name, shape, peer, our_median, our_interval, their_median, their_interval, their_median / our_median
    )


def on_cpu(library: Library, batch: Batch) -> tuple[Call, Call]:
    """Our call and NumPy's, on the same memory. Raises AssertionError if the results differ."""
    random = np.random.default_rng(0)
    a = random.standard_normal((batch.count, batch.m, batch.k)).astype(batch.launches.dtype)
    b = random.standard_normal((batch.count, batch.k, batch.n)).astype(batch.launches.dtype)
    np.testing.assert_allclose(library.matmul(a, b), np.matmul(a, b), rtol=1e-4, atol=1e-4)
    return lambda: library.matmul(a, b), lambda: np.matmul(a, b)


def on_gpu(library: Library, batch: Batch, torch: Any) -> tuple[Call, Call]:
    """Our call and torch's; a block's last call waits for the GPU. Raises AssertionError if the results differ."""
    where = {"device": "cuda", "dtype": getattr(torch, batch.launches.dtype)}
    a, b = torch.randn(batch.count, batch.m, batch.k, **where), torch.randn(batch.count, batch.k, batch.n, **where)
    torch.testing.assert_close(library.matmul(a, b), torch.bmm(a, b))

    def waited(call: Call) -> Call:
        """The call, which waits for the GPU at the end of each of `compared`'s blocks."""
        left = CALLS["GPU"]

        def counted() -> object:
            nonlocal left
            result = call()
            left -= 1
            if not left:
                left = CALLS["GPU"]
                torch.cuda.synchronize()
            return result

        return counted

    return waited(lambda: library.matmul(a, b)), waited(lambda: torch.bmm(a, b))


def show(rows: list[BatchTimes]) -> None:
    table = Table("device", "batch x M x N x K", "ours", "interval", "peer", "theirs", "interval", "theirs / ours")
    for row in rows:
        first, second = (f"{low:.1f} - {high:.1f}" for low, high in (row.ours_interval, row.theirs_interval))
        table.add_row(
            *(row.device, row.batch, f"{row.ours:.1f}", first, row.peer, f"{row.theirs:.1f}", second),
            f"{row.ratio:.3f}",
        )
    Console(highlight=False, width=160).print(table)


if __name__ == "__main__":
    main()
