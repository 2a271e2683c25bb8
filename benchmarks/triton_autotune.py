"""`triton.autotune` on a plain matmul (one tile a program, pointers and masks), for a comparison of tuning times.

    python benchmarks/triton_autotune.py '{"configurations": 40, "threads": 16, "problems": [{"m": 512, ...}]}'

Every configuration of every problem is compiled first, by `threads` threads (`triton.AsyncCompileMode`). With 0
threads, or if Triton lacks this mode, a configuration is compiled when it is timed. The output, as JSON, has the
seconds of compiling, and for each problem the seconds until its first result, which is its tuning time. Programs are
kept in TRITON_CACHE_DIR.
"""

from __future__ import annotations

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import torch
import triton
import triton.language as tl

SPACE = {
    "ROWS": (16, 64, 128, 256),
    "COLUMNS": (32, 64, 128, 256),
    "DEPTH": (32, 64, 128),
    "GROUP": (1, 8),
    "num_warps": (4, 8),
    "num_stages": (2, 3, 4, 5),
}
MOST_SHARED = 227 * 1024
"""Bytes of shared memory that a block has at most on Hopper."""


@triton.jit
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    a_row,
    a_column,
    b_row,
    b_column,
    c_row,
    ROWS: tl.constexpr,  # noqa: N803 (Triton's custom for constants)
    COLUMNS: tl.constexpr,  # noqa: N803
    DEPTH: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
):
    """C = A B in float32 sums; strides in elements, C's columns side by side. Tiles go in bands of GROUP tile rows."""
    down, across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    band = tl.program_id(0) // (GROUP * across)
    inside = tl.program_id(0) % (GROUP * across)
    height = min(GROUP, down - band * GROUP)
    rows = (band * GROUP + inside % height) * ROWS + tl.arange(0, ROWS)
    columns = (inside // height) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, k, DEPTH):
        depth = first + tl.arange(0, DEPTH)
        a_there = (rows[:, None] < m) & (depth[None, :] < k)
        b_there = (depth[:, None] < k) & (columns[None, :] < n)
        x = tl.load(a + rows[:, None] * a_row + depth[None, :] * a_column, mask=a_there, other=0.0)
        y = tl.load(b + depth[:, None] * b_row + columns[None, :] * b_column, mask=b_there, other=0.0)
        sums = tl.dot(x, y, sums)
    c_there = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * c_row + columns[None, :], sums.to(c.dtype.element_ty), mask=c_there)


def configurations(count: int, element: int, seed: int = 0) -> list[Any]:
    """`count` random configurations that fit into shared memory; all of them if there are fewer."""
    drawn = [dict(zip(SPACE, values, strict=True)) for values in product(*SPACE.values())]
    fitting = [
        choice
        for choice in drawn
        if choice["num_stages"] * choice["DEPTH"] * (choice["ROWS"] + choice["COLUMNS"]) * element <= MOST_SHARED
    ]
    chosen = random.Random(seed).sample(fitting, min(count, len(fitting)))
    names = ("ROWS", "COLUMNS", "DEPTH", "GROUP")
    return [
        triton.Config(
            {name: choice[name] for name in names}, num_warps=choice["num_warps"], num_stages=choice["num_stages"]
        )
        for choice in chosen
    ]


def launch(kernel: Any, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, **constants: int) -> None:
    (m, k), n = a.shape, b.shape[1]
    kernel[lambda meta: (triton.cdiv(m, meta["ROWS"]) * triton.cdiv(n, meta["COLUMNS"]),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), c.stride(0), **constants
    )


def stored(rows: int, columns: int, transposed: bool, dtype: torch.dtype) -> torch.Tensor:
    elements = torch.randn((columns, rows) if transposed else (rows, columns), device="cuda").to(dtype)
    return elements.t() if transposed else elements


def operands(problem: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dtype = getattr(torch, problem["dtype"])
    m, n, k = (problem[name] for name in "mnk")
    a, b = stored(m, k, problem["trans_a"], dtype), stored(k, n, problem["trans_b"], dtype)
    return a, b, torch.empty((m, n), device="cuda", dtype=dtype if dtype.itemsize > 1 else torch.float32)


def seconds(problem: dict[str, Any], tuned: Any) -> float:
    tensors = operands(problem)
    torch.cuda.synchronize()
    began = time.perf_counter()
    launch(tuned, *tensors)
    torch.cuda.synchronize()
    return time.perf_counter() - began


class CompiledKernel:
    """A kernel whose launch only compiles it."""

    def __init__(self, tuned: Any) -> None:
        self._tuned = tuned

    def __getitem__(self, grid: Any) -> Any:
        return lambda *arguments: self._tuned.warmup(*arguments, grid=grid)


def compiled(problems: list[dict[str, Any]], tuned: Any, threads: int) -> float:
    """Compile every configuration of all problems, and return the seconds."""
    began = time.perf_counter()
    if threads and hasattr(triton, "AsyncCompileMode"):
        with ThreadPoolExecutor(threads) as pool, triton.AsyncCompileMode(pool, ignore_errors=True):
            for problem in problems:
                launch(CompiledKernel(tuned), *operands(problem))
    return time.perf_counter() - began


def main() -> None:
    task = json.loads(sys.argv[1])
    element = getattr(torch, task["problems"][0]["dtype"]).itemsize
    configs = configurations(task["configurations"], element)
    strides = ["a_row", "a_column", "b_row", "b_column"]
    tuned = triton.autotune(configs=configs, key=["m", "n", "k", *strides])(matmul)
    torch.cuda.init()
    compiling = compiled(task["problems"], tuned, task["threads"])
    taken = [seconds(problem, tuned) for problem in task["problems"]]
    print(
        json.dumps(
            {
                "configurations": len(configs),
                "compiling": compiling,
                "seconds": taken,
                "threads": task["threads"] if hasattr(triton, "AsyncCompileMode") else 0,
                "triton": triton.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
