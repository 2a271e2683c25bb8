"""How long does the first call of a Triton function take under `triton.autotune` and under `tunesmith.autotune`?

    python benchmarks/autotune_beside_triton.py [--json RESULT.json]

A softmax with 24 configurations and a product in half precision with 64. Each side runs in a process of its own with
empty caches. The wall time is that of the first call, without the start of Python and torch. Both winners are then
timed in one process with Triton's `do_bench`, in turns, three times each. The last figure is the time to the end of
the first calls in a second process, with the caches of the first, from the import of tunesmith on. It needs a GPU.
"""

# ruff: noqa: N803  # constants of Triton functions have names in capitals

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import triton
import triton.language as tl


@triton.jit
def softmax(y, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest, total = -float("inf"), 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
        larger = tl.maximum(largest, tl.max(values, axis=0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(values - larger), axis=0)
        largest = larger
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
        tl.store(y + row * columns + column, tl.exp(values - largest) / total, mask=column < columns)


@triton.jit
def product(c, a, b, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            a + rows[:, None] * k + depth[None, :], mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0
        )
        right = tl.load(
            b + depth[:, None] * n + columns[None, :], mask=(depth[:, None] < k) & (columns[None, :] < n), other=0.0
        )
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums, mask=(rows[:, None] < m) & (columns[None, :] < n))


SOFTMAX = [
    triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
    for block in (512, 1024, 2048, 4096)
    for warps in (2, 4, 8)
    for stages in (1, 3)
]
PRODUCT = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=stages)
    for m in (64, 128)
    for n in (64, 128)
    for k in (32, 64)
    for warps in (4, 8)
    for stages in (2, 3, 4, 5)
]


def calls(autotune: Any) -> dict[str, Any]:
    """A call of each kernel, and the kernel, under a decorator like `triton.autotune`."""
    import torch

    tuned_softmax = autotune(configs=SOFTMAX, key=["columns"])(softmax)
    tuned_product = autotune(configs=PRODUCT, key=["m", "n", "k"])(product)
    x = torch.randn(4096, 4000, device="cuda")
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    y, c = torch.empty_like(x), torch.empty(2048, 2048, device="cuda", dtype=torch.float16)

    def tiles(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(2048, meta["BLOCK_M"]), triton.cdiv(2048, meta["BLOCK_N"])

    return {
        "softmax": (tuned_softmax, lambda kernel: kernel[(4096,)](y, x, 4000)),
        "product": (tuned_product, lambda kernel: kernel[tiles](c, a, b, 2048, 2048, 2048)),
    }


def run_side(side: str) -> dict[str, Any]:
    import torch

    torch.cuda.init()
    began = time.monotonic()
    import tunesmith

    found = {}
    for name, (kernel, call) in calls(triton.autotune if side == "triton" else tunesmith.autotune).items():
        start = time.monotonic()
        call(kernel)
        torch.cuda.synchronize()
        found[name] = {"seconds": time.monotonic() - start, "best": str(kernel.best_config)}
    return {"found": found, "ready": time.monotonic() - began}


def in_process(side: str, folder: str) -> dict[str, Any]:
    variables = {**os.environ, "TRITON_CACHE_DIR": f"{folder}/{side}", "TUNESMITH_CACHE": f"{folder}/cache"}
    done = subprocess.run([sys.executable, __file__, "--side", side], env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{side} failed:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def times_of(name: str, winners: dict[str, str]) -> dict[str, float]:
    """The median of three medians for each winner, in turns."""
    configs = {str(config): config for config in (SOFTMAX if name == "softmax" else PRODUCT)}
    measured: dict[str, list[float]] = {side: [] for side in winners}
    for _ in range(3):
        for side, best in winners.items():
            chosen = next(config for text, config in configs.items() if text == best)

            def only(configs: Any, key: Any, config: Any = chosen) -> Any:
                return triton.autotune(configs=[config], key=key)

            kernel, call = calls(only)[name]
            measured[side].append(triton.testing.do_bench(lambda: call(kernel)))  # noqa: B023
    return {side: statistics.median(times) for side, times in measured.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--side", choices=("triton", "tunesmith"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.side:
        print(json.dumps(run_side(asked.side)))
        return
    with tempfile.TemporaryDirectory() as folder:
        sides = {side: in_process(side, folder) for side in ("tunesmith", "triton")}
        second = in_process("tunesmith", folder)
    rows = []
    for name, configs in (("softmax", SOFTMAX), ("product", PRODUCT)):
        seconds = {side: result["found"][name]["seconds"] for side, result in sides.items()}
        times = times_of(name, {side: result["found"][name]["best"] for side, result in sides.items()})
        rows.append({"kernel": name, "configurations": len(configs), "seconds": seconds, "times": times})
        print(
            f"{name}: {len(configs)} configurations; first call tunesmith {seconds['tunesmith']:.1f} s, triton "
            f"{seconds['triton']:.1f} s, ratio {seconds['tunesmith'] / seconds['triton']:.2f}; winners "
            f"{times['tunesmith'] * 1e3:.1f} and {times['triton'] * 1e3:.1f} us; second process "
            f"{second['found'][name]['seconds']:.2f} s",
            flush=True,
        )
    print(f"second process: ready {second['ready']:.2f} s after torch's start")
    if asked.json:
        asked.json.write_text(json.dumps({"rows": rows, "second": second}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
