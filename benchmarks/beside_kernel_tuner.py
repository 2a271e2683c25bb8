"""How long does tuning a kernel of one's own take beside Kernel Tuner? How good is the result, in how many lines?

    python benchmarks/beside_kernel_tuner.py [--device OpenCL|CUDA] [--only softmax] [--json RESULT.json]

Both tuners get the same texts, sizes and configurations, with their default measuring, and check every result. A row
softmax has 288 configurations, a five-point stencil 96, an attention 64. Each tuner runs in a process of its own with
empty caches. The wall time includes the start of that process. Then both winners are timed side by side, in interleaved
blocks. The lines are those of the functions below that call the tuners, without the kernels and their references, which
both share. The attention has no group of 128: PoCL's stack is too small for it, and Kernel Tuner would end with it.
`pip install kernel-tuner` first; on a GPU it takes CuPy. With --json, this machine's rows take the place of its earlier
rows in the file, and the rows of other machines stay.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

LANGUAGE = """
#ifdef __OPENCL_VERSION__
#define ENTRY __kernel
#define GLOBAL __global
#define SHARED __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define GROUP_ID get_group_id(0)
#define ITEM_ID ((int)get_local_id(0))
#else
#define ENTRY extern "C" __global__
#define GLOBAL
#define SHARED __shared__
#define BARRIER __syncthreads()
#define GROUP_ID blockIdx.x
#define ITEM_ID ((int)threadIdx.x)
#define fmax fmaxf
#define exp expf
#endif
"""

SOFTMAX = (
    LANGUAGE
    + """
ENTRY void softmax(GLOBAL float *y, GLOBAL const float *x, int rows, int columns)
{
    SHARED float part[GROUP];
    for (int row = GROUP_ID * ROWS; row < min((int)(GROUP_ID + 1) * ROWS, rows); ++row) {
        GLOBAL const float *from = x + row * columns;
        float largest = -1e30f, total = 0;
        #pragma unroll UNROLL
        for (int i = ITEM_ID * WIDTH; i < columns; i += GROUP * WIDTH)
            for (int j = i; j < i + WIDTH; ++j) if (j < columns) largest = fmax(largest, from[j]);
        part[ITEM_ID] = largest;
        BARRIER;
        for (int i = 0; i < GROUP; ++i) largest = fmax(largest, part[i]);
        BARRIER;
        #pragma unroll UNROLL
        for (int i = ITEM_ID * WIDTH; i < columns; i += GROUP * WIDTH)
            for (int j = i; j < i + WIDTH; ++j) if (j < columns) total += exp(from[j] - largest);
        part[ITEM_ID] = total;
        BARRIER;
        total = 0;
        for (int i = 0; i < GROUP; ++i) total += part[i];
        BARRIER;
        #pragma unroll UNROLL
        for (int i = ITEM_ID * WIDTH; i < columns; i += GROUP * WIDTH)
            for (int j = i; j < i + WIDTH; ++j) if (j < columns) y[row * columns + j] = exp(from[j] - largest) / total;
    }
}
"""
)

STENCIL = (
    LANGUAGE
    + """
ENTRY void stencil(GLOBAL float *y, GLOBAL const float *x, int rows, int columns)
{
    for (int step = 0; step < ITEMS; ++step) {
        const int i = (GROUP_ID * ITEMS + step) * GROUP * WIDTH + ITEM_ID * WIDTH;
        #pragma unroll UNROLL
        for (int at = i; at < i + WIDTH; ++at) {
            const int row = at / columns, column = at % columns;
            if (row < rows)
                y[at] = 0.5f * x[at] + 0.125f * ((row ? x[at - columns] : 0) + (row + 1 < rows ? x[at + columns] : 0)
                      + (column ? x[at - 1] : 0) + (column + 1 < columns ? x[at + 1] : 0));
        }
    }
}
"""
)

ATTENTION = (
    LANGUAGE
    + """
#define TOKENS 256
#define DEPTH 64
ENTRY void attention(
    GLOBAL float *y, GLOBAL const float *q, GLOBAL const float *k, GLOBAL const float *v, int rows, int columns)
{
    SHARED float keys[TILE * DEPTH], values[TILE * DEPTH];
    const int row = GROUP_ID * GROUP + ITEM_ID, sequence = row / TOKENS * TOKENS;
    float query[DEPTH], sum[DEPTH], largest = -1e30f, total = 0;
    for (int i = 0; i < DEPTH; ++i) { query[i] = 0.125f * q[row * DEPTH + i]; sum[i] = 0; }
    for (int first = sequence; first < sequence + TOKENS; first += TILE) {
        BARRIER;
        for (int i = ITEM_ID; i < TILE * DEPTH; i += GROUP) {
            keys[i] = k[first * DEPTH + i];
            values[i] = v[first * DEPTH + i];
        }
        BARRIER;
        for (int token = 0; token < TILE; ++token) {
            float score = 0;
            #pragma unroll UNROLL
            for (int i = 0; i < DEPTH; ++i) score += query[i] * keys[token * DEPTH + i];
            const float before = largest;
            largest = fmax(largest, score);
            const float kept = exp(before - largest), weight = exp(score - largest);
            total = total * kept + weight;
            #pragma unroll UNROLL
            for (int i = 0; i < DEPTH; ++i) sum[i] = sum[i] * kept + weight * values[token * DEPTH + i];
        }
    }
    for (int i = 0; i < DEPTH; ++i) y[row * DEPTH + i] = sum[i] / total;
}
"""
)


# A reference gives its result and a bound of the numbers that were added up for it, for the tolerance.


def softmax(x: Any) -> Any:
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True), np.abs(x) + 1


def stencil(x: Any) -> Any:
    padded = np.pad(x, 1)
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return 0.5 * x + 0.125 * around, np.abs(x) + 1


def attention(q: Any, k: Any, v: Any) -> Any:
    """Each sequence of 256 rows attends to itself alone."""
    queries, keys, values = (x.reshape(-1, 256, 64) for x in (q, k, v))
    weights, _ = softmax(queries @ keys.transpose(0, 2, 1) / 8)
    return (weights @ values).reshape(q.shape), np.abs(v) + 1


KERNELS: dict[str, dict[str, Any]] = {
    "softmax": {
        "text": SOFTMAX,
        "inputs": ("x",),
        "reference": softmax,
        "shape": (1024, 1000),
        "parameters": {
            "GROUP": [1, 2, 4, 8, 16, 32, 64, 128], "ROWS": [1, 2, 4], "WIDTH": [1, 2, 4], "UNROLL": [1, 2, 4, 8],
        },
        "over": "Rows",
        "divisors": ["ROWS"],
    },
    "stencil": {
        "text": STENCIL,
        "inputs": ("x",),
        "reference": stencil,
        "shape": (1024, 1024),
        "parameters": {"GROUP": [16, 32, 64, 128], "ITEMS": [1, 2, 4, 8], "WIDTH": [1, 2, 4], "UNROLL": [1, 4]},
        "over": "Rows * Columns",
        "divisors": ["GROUP", "ITEMS", "WIDTH"],
    },
    "attention": {
        "text": ATTENTION,
        "inputs": ("q", "k", "v"),
        "reference": attention,
        "shape": (4096, 64),
        "parameters": {"GROUP": [8, 16, 32, 64], "TILE": [4, 8, 16, 32], "UNROLL": [1, 4, 16, 64]},
        "over": "Rows",
        "divisors": ["GROUP"],
    },
}  # fmt: skip


BACKENDS = {"OpenCL": "OpenCL", "CUDA": "CuPy"}
"""Kernel Tuner's backend for each device."""


def with_tunesmith(name: str, kernel: dict[str, Any], device: str, folder: str) -> Any:
    import tunesmith
    from tunesmith import In, Out

    inputs = {x: In("float32", "Rows", "Columns") for x in kernel["inputs"]}
    return tunesmith.tune(
        kernel["text"], folder, entry=name, language=device, device=device, quiet=True,
        arguments={"y": Out("float32", "Rows", "Columns"), **inputs, "rows": "Rows", "columns": "Columns"},
        sizes=dict(zip(("Rows", "Columns"), kernel["shape"], strict=True)), parameters=kernel["parameters"],
        work_group="GROUP", grid=f"ceil_div({kernel['over']}, {'*'.join(kernel['divisors'])})",
        reference=kernel["reference"],
    )  # fmt: skip


def with_kernel_tuner(name: str, kernel: dict[str, Any], device: str) -> Any:
    import kernel_tuner

    rows, columns = kernel["shape"]
    draw = np.random.default_rng(0).uniform
    inputs = [draw(-1, 1, (rows, columns)).astype(np.float32) for _ in kernel["inputs"]]
    results, _ = kernel_tuner.tune_kernel(
        name, kernel["text"], {"Rows": rows, "Rows * Columns": rows * columns}[kernel["over"]],
        [np.empty_like(inputs[0]), *inputs, np.int32(rows), np.int32(columns)], kernel["parameters"],
        grid_div_x=kernel["divisors"], block_size_names=["GROUP"], lang=BACKENDS[device], quiet=True,
        answer=[kernel["reference"](*inputs)[0], *(None for _ in inputs), None, None], atol=1e-5,
    )  # fmt: skip
    return [row for row in results if isinstance(row["time"], float)]


def lines_of(function: Any) -> int:
    """The lines of a function's body that hold anything."""
    lines = inspect.getsource(function).splitlines()[1:]
    return sum(bool(line.strip()) for line in lines)


def run_side(side: str, name: str, device: str, folder: str) -> dict[str, Any]:
    """One tuner's whole run in a process of its own: wall time and the winner's parameters."""
    variables = {**os.environ, "POCL_CACHE_DIR": f"{folder}/{side}-pocl", "CUPY_CACHE_DIR": f"{folder}/{side}-cupy"}
    variables |= {"PYOPENCL_NO_CACHE": "1", "TUNESMITH_CACHE": f"{folder}/cache"}
    Path(variables["POCL_CACHE_DIR"]).mkdir(parents=True)
    command = [sys.executable, __file__, "--side", side, "--only", name, "--device", device, "--folder", folder]
    began = time.monotonic()
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    seconds = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{side} failed on {name}:\n{done.stderr[-2000:]}")
    return {"seconds": seconds, **json.loads(done.stdout.splitlines()[-1])}


def side_by_side(name: str, folder: Path, device: str, winners: list[dict[str, Any]]) -> list[float]:
    """The median times in seconds of both winners, measured in interleaved blocks."""
    from tunesmith.bench import Bench, Job, Policy
    from tunesmith.devices import choose
    from tunesmith.logic import Logic, logic_files
    from tunesmith.records import Problem, Solution

    with_tunesmith(name, KERNELS[name], device, str(folder))  # measures nothing; this process has the reference then
    document = Logic.load(logic_files(folder)[0]).document
    best = document.solutions[document.rows[0].solution].solution
    problem = Problem(document.problem_type, document.rows[0].sizes)
    jobs = [
        Job(str(number), Solution(best.type, best.kernel, best.configuration | winner), problem)
        for number, winner in enumerate(winners)
    ]
    with tempfile.TemporaryDirectory() as cache, Bench(choose(device), Policy(), Path(cache)) as bench:
        measured = bench.interleave(jobs)
    return [measurement.estimate.seconds if measurement.estimate else float("nan") for measurement in measured]


def add_to_record(path: Path, device: str, rows: list[dict[str, Any]]) -> None:
    """Write the rows of this machine into a record, which may have rows of other machines."""
    from tunesmith.devices import choose

    target = choose(device)
    machine = {
        "name": f"{target.name}, {os.cpu_count()} processors",
        "date": time.strftime("%Y-%m-%d"),
        "driver": target.driver,
        "kernel_tuner": f"{importlib.metadata.version('kernel-tuner')} ({BACKENDS[device]})",
        "rows": rows,
    }
    machines = json.loads(path.read_text(encoding="utf-8"))["machines"] if path.exists() else []
    others = [other for other in machines if other["name"] != machine["name"]]
    path.write_text(json.dumps({"machines": [*others, machine]}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("OpenCL", "CUDA"), default="OpenCL")
    parser.add_argument("--only", choices=tuple(KERNELS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--side", choices=("tunesmith", "kernel_tuner"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.side:
        kernel = KERNELS[asked.only]
        if asked.side == "tunesmith":
            tuned = with_tunesmith(asked.only, kernel, asked.device, f"{asked.folder}/run")
            answer = {"winner": tuned.winner, "configurations": len(tuned.table)}
        else:
            ran = with_kernel_tuner(asked.only, kernel, asked.device)
            best = min(ran, key=lambda row: row["time"])
            answer = {"winner": {key: int(best[key]) for key in kernel["parameters"]}, "configurations": len(ran)}
        print(json.dumps(answer))
        return
    rows: list[dict[str, Any]] = []
    for name in [asked.only] if asked.only else KERNELS:
        with tempfile.TemporaryDirectory() as folder:
            ours = run_side("tunesmith", name, asked.device, folder)
            theirs = run_side("kernel_tuner", name, asked.device, folder)
            times = side_by_side(name, Path(folder, "run"), asked.device, [ours["winner"], theirs["winner"]])
        row = {
            "kernel": name,
            "device": asked.device,
            "configurations": ours["configurations"],
            "ours": ours,
            "theirs": theirs,
        }
        row |= {"our_best": times[0], "their_best": times[1]}
        row |= {"our_lines": lines_of(with_tunesmith), "their_lines": lines_of(with_kernel_tuner)}
        rows.append(row)
        print(
            f"{name}: {ours['configurations']} configurations; tunesmith {ours['seconds']:.1f} s, "
            f"Kernel Tuner {theirs['seconds']:.1f} s, ratio {ours['seconds'] / theirs['seconds']:.2f}; winners "
            f"{times[0] * 1e6:.1f} and {times[1] * 1e6:.1f} us, theirs / ours {times[1] / times[0]:.3f}; lines "
            f"{row['our_lines']} and {row['their_lines']}",
            flush=True,
        )
    if asked.json:
        add_to_record(asked.json, asked.device, rows)


if __name__ == "__main__":
    main()
