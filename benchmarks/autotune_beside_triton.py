"""How long does the first call of a Triton function take under `triton.autotune` and under `tunesmith.autotune`?

    python benchmarks/autotune_beside_triton.py [--only softmax --only product ...] [--alone] [--json RESULT.json]
    python benchmarks/autotune_beside_triton.py [--only softmax --only product ...] --plant [--json RESULT.json]

The kernels are those of `triton_patterns`, with large arguments. Each side calls all of them in a process of its own
with empty caches; with `--alone`, each kernel in a process of its own. The wall time is that of a kernel's first call,
without the start of Python and torch; what the side imports then counts for its first kernel. Each kernel's two winners
are timed in one process with Triton's `do_bench`, in turns, three times each. The winners are the same if they are the
same configuration, and tied if Triton's winner is among tunesmith's ties, or if the ranges of the two winners' three
times overlap. The last figure is of a second process, with the caches of the first: the time of the import of tunesmith
and of all first calls, without the making of their arguments. It needs a GPU.

With `--plant`, tunesmith alone tunes the kernels, each with two more configurations: one hangs, one is wrong. What
became of them is printed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import triton

from triton_patterns import PATTERNS, Pattern
from triton_patterns.planted import planted


def tuned(pattern: Pattern, autotune: Any, configs: Sequence[Any]) -> Any:
    """The pattern's kernel under a decorator like `triton.autotune`."""
    reset = list(pattern.reset_to_zero) or None
    return autotune(configs=list(configs), key=list(pattern.key), reset_to_zero=reset)(pattern.kernel)


def run_side(side: str, names: Sequence[str]) -> None:
    """Print what was found in JSON, a line for each kernel, and then the seconds of the import and all first calls."""
    torch.cuda.init()
    start = time.monotonic()
    import tunesmith

    ready = time.monotonic() - start
    for name in names:
        pattern = PATTERNS[name]
        kernel = tuned(pattern, triton.autotune if side == "triton" else tunesmith.autotune, pattern.configs)
        arguments = pattern.call("cuda", True)
        torch.cuda.synchronize()
        start = time.monotonic()
        kernel[pattern.grid](*arguments.values())
        torch.cuda.synchronize()
        seconds, ties = time.monotonic() - start, [str(config) for config in getattr(kernel, "ties", ())]
        print(json.dumps({name: {"seconds": seconds, "best": str(kernel.best_config), "ties": ties}}), flush=True)
        ready += seconds
        del arguments
    print(json.dumps(ready))


def run_planted(names: Sequence[str]) -> list[dict[str, Any]]:
    """What became of the planted configurations, and whether the result of the call is right."""
    import tunesmith

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            pattern = planted(PATTERNS[name], Path(folder))
            decorate = tunesmith.autotune(
                pattern.configs, pattern.key, reset_to_zero=pattern.reset_to_zero, settings={"TimeoutSeconds": 5},
                quiet=True,
            )  # fmt: skip
            kernel, arguments = decorate(pattern.kernel), pattern.call("cuda", True)
            start = time.monotonic()
            kernel[pattern.grid](*arguments.values())
            torch.cuda.synchronize()
            seconds, failures = time.monotonic() - start, kernel.measured.failures
            row = {"kernel": name, "seconds": seconds, "hangs": failures.get(1), "wrong": failures.get(2)}
            rows.append({**row, "others failed": len(failures.keys() - {1, 2}), "best": str(kernel.best_config)})
            survived = str(row["hangs"]).startswith("timeout") and str(row["wrong"]).startswith("wrong result")
            print(f"{name}: {'survived' if survived else 'NOT SURVIVED'} in {seconds:.1f} s; {rows[-1]}", flush=True)
    return rows


def in_process(side: str, names: Sequence[str], folder: str) -> dict[str, Any]:
    variables = {**os.environ, "TRITON_CACHE_DIR": f"{folder}/{side}", "TUNESMITH_CACHE": f"{folder}/cache"}
    command = [sys.executable, __file__, "--side", side, *(word for name in names for word in ("--only", name))]
    found: dict[str, Any] = {}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        lines = map(json.loads, process.stdout)
        for line in itertools.islice(lines, len(names)):
            ((name, row),) = line.items()
            print(f"{side}: {name} in {row['seconds']:.2f} s", file=sys.stderr, flush=True)
            found[name] = row
        ready = next(lines, None)
        if process.wait():
            errors.seek(0)
            raise SystemExit(f"{side} failed:\n{errors.read()[-3000:]}")
    return {"found": found, "ready": ready}


def found_alone(side: str, names: Sequence[str]) -> dict[str, Any]:
    """What was found of each kernel in a process of its own, with empty caches."""
    found: dict[str, Any] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found |= in_process(side, [name], folder)["found"]
    return found


def times_of(pattern: Pattern, winners: dict[str, str]) -> dict[str, list[float]]:
    """Three medians for each side's winner, in milliseconds, measured in turns."""
    by_text = {str(config): config for config in pattern.configs}
    arguments = pattern.call("cuda", True)
    kernels = {side: tuned(pattern, triton.autotune, [by_text[best]]) for side, best in winners.items()}
    measured: dict[str, list[float]] = {side: [] for side in winners}
    for _ in range(3):
        for side, kernel in kernels.items():
            call = kernel[pattern.grid]
            measured[side].append(triton.testing.do_bench(lambda: call(*arguments.values())))  # noqa: B023
    return measured


def described() -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name(), "date": time.strftime("%Y-%m-%d"), "triton": triton.__version__,
        "torch": torch.__version__, "processors": os.cpu_count(),
    }  # fmt: skip


def verdict(ours: dict[str, Any], theirs: dict[str, Any], times: dict[str, list[float]]) -> str:
    if ours["best"] == theirs["best"]:
        return "same"
    if max(times["tunesmith"]) < min(times["triton"]):
        return "faster"
    is_tie = theirs["best"] in ours["ties"] or min(times["tunesmith"]) <= max(times["triton"])
    return "tie" if is_tie else "slower"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(PATTERNS), action="append")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--side", choices=("triton", "tunesmith"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    names = asked.only or list(PATTERNS)
    if asked.side:
        run_side(asked.side, names)
        return
    if asked.plant:
        rows = run_planted(names)
        if asked.json:
            asked.json.write_text(json.dumps({**described(), "rows": rows}, indent=1) + "\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        sides = {side: in_process(side, names, folder)["found"] for side in ("tunesmith", "triton")}
        second = in_process("tunesmith", names, folder)
    if asked.alone:
        sides = {side: found_alone(side, names) for side in sides}
    rows = []
    for name in names:
        ours, theirs = (sides[side][name] for side in ("tunesmith", "triton"))
        ranges = times_of(PATTERNS[name], {"tunesmith": ours["best"], "triton": theirs["best"]})
        times = {side: statistics.median(measured) for side, measured in ranges.items()}
        row = {"kernel": name, "configurations": len(PATTERNS[name].configs), "winner": verdict(ours, theirs, ranges)}
        seconds = {side: sides[side][name]["seconds"] for side in sides}
        rows.append({**row, "seconds": seconds, "times": times, "ranges": ranges})
        print(
            f"{name}: {row['configurations']} configurations; first call tunesmith {ours['seconds']:.1f} s, triton "
            f"{theirs['seconds']:.1f} s, ratio {ours['seconds'] / theirs['seconds']:.2f}; winner {row['winner']}, "
            f"{times['tunesmith'] * 1e3:.1f} and {times['triton'] * 1e3:.1f} us; second process "
            f"{second['found'][name]['seconds']:.2f} s",
            flush=True,
        )
    ratios = [row["seconds"]["tunesmith"] / row["seconds"]["triton"] for row in rows]
    gains = [row["times"]["triton"] / row["times"]["tunesmith"] for row in rows]
    print(
        f"geometric means over {len(rows)} kernels: first call tunesmith / triton "
        f"{statistics.geometric_mean(ratios):.2f}, winners triton / tunesmith {statistics.geometric_mean(gains):.3f}"
    )
    print(f"second process: ready in {second['ready']:.2f} s, the import included")
    if asked.json:
        asked.json.write_text(json.dumps({**described(), "rows": rows, "second": second}, indent=1) + "\n")


if __name__ == "__main__":
    main()
