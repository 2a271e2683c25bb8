"""Does one interface serve NVRTC, Triton with host-side TMA descriptors, and split-K in two launches? On an NVIDIA GPU.

    python benchmarks/gpu_proof.py OUT [--skip-tests]

Needs CUDA's driver with NVRTC, Triton >= 3.4 and a GPU of compute capability 9.0 or newer. The parts: the devices; the
tests that need a GPU; compilation ahead of time by processes that see no GPU, and loading; tuning of
`examples/gpu_proof.yaml` through the bench, the store and the protocol; the same command again, which must measure
nothing; the times of the three forms; and launches from the written logic, at sizes that were measured and at others.
Ends with "proof: complete" and exit code 0 if all parts succeed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tunesmith.bench.statistics import median_interval
from tunesmith.devices import APIS, open_device
from tunesmith.kernels import KERNELS
from tunesmith.library import load
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Binary, Configuration, Module, Outcome, Problem, Solution, Target
from tunesmith.store import Store
from tunesmith.toolchains import TOOLCHAINS

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "gpu_proof.yaml"
FORMS = ("NVRTC", "NVRTC, split-K", "Triton, TMA")
console = Console(width=150, highlight=False)


def command(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command of tunesmith as a user would, show its output, and return it."""
    console.print(f"$ tunesmith {' '.join(arguments)}", style="bold")
    run = [sys.executable, "-m", "tunesmith.cli.main", *arguments]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    console.print(done.stdout, end="", markup=False)
    if done.returncode not in codes:
        console.print(done.stderr[-4000:], markup=False)
        raise RuntimeError(f"exit code {done.returncode}")
    return done.stdout


def devices(out: Path) -> None:
    command("devices")


def tests(out: Path) -> None:
    """The tests marked `gpu`: memory, launches, events, both families between guard bands, a poisoned context."""
    files = [str(path) for name in ("cuda", "triton") for path in sorted((ROOT / "tests").rglob(f"test_{name}_*.py"))]
    run = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-rs", "-p", "no:cacheprovider", *files]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    console.print(done.stdout[-6000:], markup=False)
    if done.returncode:
        raise RuntimeError(f"pytest ended with {done.returncode}")


def ahead_of_time(out: Path) -> None:
    """Every Triton configuration of a small space, compiled by processes that see no GPU, then loaded."""
    target = _target()
    family, kind = KERNELS["TritonTmaGemm"], gemm_type("s", transpose_b=False, batched=True)
    axes = {"ThreadTile": [(4, 4), (8, 4), (8, 8)], "DepthU": [16, 32], "NumStages": [2, 3, 4, 5]}
    defaults = family.space(kind).defaults
    configs = [defaults | Configuration(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    legal = [config for config in configs if not list(family.rejections(config, kind, target))]
    modules = [family.modules(config, kind)[0] for config in legal]
    processes = len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_blind) as pool:
        list(pool.map(_idle, range(4 * processes)))
        began = time.perf_counter()
        binaries = list(pool.map(_compile, modules, [target] * len(modules)))
        compiled = time.perf_counter() - began
    device = open_device(target)
    began = time.perf_counter()
    for binary in binaries:
        device.load(binary)
    loaded = (time.perf_counter() - began) / len(binaries)
    device.close()
    size = sum(len(binary.payload) for binary in binaries) / len(binaries)
    console.print(
        f"{len(binaries)} of {len(configs)} Triton TMA configurations compiled in {compiled:.1f} s by {processes} "
        f"processes without a GPU, loaded in {1e3 * loaded:.1f} ms each ({size / 1024:.0f} KiB)"
    )


def tune(out: Path) -> None:
    # Exit code 1 means done, with something to look at (a wrong result, a drift); the table of outcomes below shows it.
    command("tune", str(EXAMPLE), "-o", str(out), "--device", "CUDA", "--quiet", codes=(0, 1))


def resume(out: Path) -> None:
    """The same command again measures nothing."""
    console.print(f"$ tunesmith tune {EXAMPLE.name} -o OUT --json   (again)", style="bold")
    run = [
        sys.executable,
        "-m",
        "tunesmith.cli.main",
        "tune",
        str(EXAMPLE),
        "-o",
        str(out),
        "--device",
        "CUDA",
        "--json",
    ]
    done = json.loads(subprocess.run(run, cwd=ROOT, capture_output=True, text=True).stdout)
    console.print(f"measured {done['measured']}, found again {done['reused']}, {done['seconds']:.1f} s")
    if done["measured"]:
        raise RuntimeError("something was measured twice")


def times(out: Path) -> None:
    """The best of each form at each size, and the outcomes of all measurements."""
    with Store.open(out / "measurements.sqlite") as store:
        entries = list(store.entries())
        console.print(_best(entries))
        outcomes = Table("outcome", "reason", "count", "for example", title="every measurement")
        counted = sum(entry.measurement.ok for entry in entries)
        outcomes.add_row("ok", "", str(counted), "")
        for failure in store.failures():
            outcomes.add_row(str(failure.outcome), failure.reason, str(failure.count), failure.example[:80])
        console.print(outcomes)
    ran = {form(entry.solution) for entry in entries if entry.measurement.ok}
    if missing := set(FORMS) - ran:
        raise RuntimeError(f"nothing ran as {', '.join(sorted(missing))}")
    if wrong := [entry for entry in entries if entry.measurement.outcome is Outcome.WRONG_RESULT]:
        raise RuntimeError(f"{len(wrong)} wrong results, the first: {wrong[0].measurement.detail}")


def form(solution: Solution) -> str:
    config = solution.configuration
    if config["KernelLanguage"] == "Triton":
        return FORMS[2]
    return FORMS[1] if config.integer("GlobalSplitU") > 1 else FORMS[0]


def _best(entries: list) -> Table:
    best: dict[Problem, dict[str, object]] = defaultdict(dict)
    for entry in sorted(
        (entry for entry in entries if entry.measurement.estimate),
        key=lambda entry: -entry.measurement.estimate.seconds,
    ):
        best[entry.problem][form(entry.solution)] = entry
    table = Table(
        "M x N x batch x K", *FORMS, title="TFLOP/s of the best of each form, in the median (95 % interval, n)"
    )
    for problem in sorted(best, key=lambda problem: problem.sizes):
        flops = OPERATIONS["GEMM"].flops(problem)
        cells = [_cell(best[problem].get(name), flops) for name in FORMS]
        table.add_row(str(problem), *cells)
    return table


def _cell(entry, flops: float) -> str:
    if entry is None:
        return "-"
    estimate, config = median_interval(entry.measurement.samples), entry.solution.configuration
    shown = [
        config["ThreadTile"],
        config["DepthU"],
        *(config[name] for name in ("GlobalSplitU", "NumStages") if name in config),
    ]
    rates = [flops / seconds / 1e12 for seconds in (estimate.seconds, estimate.high, estimate.low)]
    parameters = " ".join(str(value).replace(" ", "") for value in shown)
    return f"{rates[0]:.2f} ({rates[1]:.2f}-{rates[2]:.2f}, {estimate.count})\n{parameters}"


def launches(out: Path) -> None:
    """Checks the logic's launches at sizes that were measured and at others; prints what was selected and launched."""
    launched_so_far: list = []
    table = Table("product", "rule", "solution", "launches", "worst error / bound", title="the logic, loaded again")
    random = np.random.default_rng(11)
    with load(out / "logic", launched=launched_so_far.append) as library:
        for m, n, k in ((1024, 1024, 1024), (256, 256, 16384), (1023, 1023, 1023), (900, 1300, 700), (77, 1, 30000)):
            a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
            result = library.matmul(a, b)
            exact = a.astype(np.float64) @ b.astype(np.float64)
            norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)[None, :]
            share = np.max(np.abs(result - exact) / (4 * np.sqrt(k) * 2.0**-24 * norms))
            launched = launched_so_far[-1]
            table.add_row(
                f"{m}x{k} @ {k}x{n}",
                str(launched.choice.rule),
                launched.choice.name,
                ", ".join(step.entry for step in launched.plan.steps),
                f"{share:.3f}",
            )
            if not share <= 1:
                raise RuntimeError(f"{m}x{n}x{k} is wrong by {share:.2f} bounds")
    console.print(table)
    if not any(len(launched.plan.steps) == 2 for launched in launched_so_far):
        console.print("note: no launch of a split-K solution was selected")


def _target() -> Target:
    target = APIS["CUDA"].find()[0].target
    if target is None:
        raise RuntimeError(APIS["CUDA"].find()[0].problem)
    return target


def _blind() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def _idle(index: int) -> None:
    TOOLCHAINS["Triton"].unavailable()
    time.sleep(0.05)


def _compile(module: Module, target: Target) -> Binary:
    return TOOLCHAINS[module.language].compile(module, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the results; the same one again goes on")
    parser.add_argument("--skip-tests", action="store_true")
    chosen = parser.parse_args()
    parts: list[Callable[[Path], None]] = [devices, tests, ahead_of_time, tune, resume, times, launches]
    failed = []
    for part in parts:
        if part is tests and chosen.skip_tests:
            continue
        console.rule(part.__name__.replace("_", " "))
        began = time.perf_counter()
        try:
            part(chosen.out.resolve())
        except Exception as error:  # the parts after it may still give information
            failed.append(part.__name__)
            console.print(f"FAILED: {type(error).__name__}: {error}", markup=False)
        console.print(f"[dim]{time.perf_counter() - began:.1f} s[/dim]")
    console.print(f"proof: failed in {', '.join(failed)}" if failed else "proof: complete")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
