"""Random fills on an NVIDIA GPU: ours, tuned and by default, against cuRAND's host API in each ordering, and memset.

    python benchmarks/random_vs_curand.py OUT [--bytes 1073741824,16777216] [--csv ROWS.csv] [--json RUN.json]

First the launch shapes are tuned (`tunesmith random tune` into OUT; measurements in OUT are not repeated). Then the
library's own call, `tunesmith.random.Generator` on torch tensors, is timed in blocks that alternate with blocks of
cuRAND (through CuPy) and of memset, on the same stream and bytes. The calls of a block are queued behind a kernel that
keeps the GPU busy until all of them are queued, so that no call waits for the host. The first call of a block is
dropped; the time between events around the others is divided by their number. The figures are medians over the blocks;
ratios pair the blocks of one round. The host's time for a call is shown beside them.

cuRAND is timed in those of its orderings DEFAULT, BEST and DYNAMIC that the generator has (quasi-random generators have
one ordering). A row's main ratio is to the fastest ordering. A row misses the mark if the interval of a ratio is below
0.97. The exit code is 1 if a row misses the mark, or if a fill did not run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from random_ratios import CurandResult, Fill, Row, csv_text, shown, sums
from tunesmith.devices import choose
from tunesmith.logic.random.table import FILE_NAME
from tunesmith.problems.random import GENERATORS
from tunesmith.random import Generator
from tunesmith.records import UserError
from tunesmith.report import ProgressReport
from tunesmith.session.random.plan import RandomTask, tune_random

PAIRS = (
    ("uniform", "float"),
    ("uniform", "double"),
    ("normal", "float"),
    ("normal", "double"),
    ("log_normal", "float"),
    ("log_normal", "double"),
    ("poisson", "unsigned_int"),
)
CURAND = {
    "xorwow": 101,
    "mrg32k3a": 121,
    "mtgp32": 141,
    "mt19937": 142,
    "philox4_32_10": 161,
    "sobol32": 201,
    "scrambled_sobol32": 202,
    "sobol64": 203,
    "scrambled_sobol64": 204,
}
"""The `curandRngType` of each generator that cuRAND has, too."""

CALLS = {
    ("uniform", "float"): ("generateUniform", ()),
    ("uniform", "double"): ("generateUniformDouble", ()),
    ("normal", "float"): ("generateNormal", (0.0, 1.0)),
    ("normal", "double"): ("generateNormalDouble", (0.0, 1.0)),
    ("log_normal", "float"): ("generateLogNormal", (0.0, 1.0)),
    ("log_normal", "double"): ("generateLogNormalDouble", (0.0, 1.0)),
    ("poisson", "unsigned_int"): ("generatePoisson", (10.0,)),
}
ORDERINGS = {"best": 100, "default": 101, "dynamic": 104}
"""The `curandOrdering` of pseudo-random generators; without `legacy` (old sequences) and `seeded` (a faster start)."""
ONLY = "default"
"""The name for the only ordering of quasi-random generators, which is not set."""
DIMENSIONS = 16
ROUNDS = 9
BLOCK_SECONDS = 2e-3
GATE_HERTZ = 2.0e9
GATE_MARGIN = 1.5
"""About the GPU's clock rate, and the gate's length relative to the time in which the host queues a block."""

console = Console(highlight=False, width=170)
Call = Callable[[], object]


@dataclass(frozen=True)
class TriedShapes:
    """The launch shapes of one tuning run, for the named generators, or for all other generators without names."""

    names: tuple[str, ...]
    blocks: tuple[int, ...]
    grids: tuple[int, ...]


TRIED = (
    TriedShapes(("mt19937", "mtgp32"), (64, 128, 256), (264, 528, 660)),
    TriedShapes(("xorwow", "mrg32k3a", "mrg31k3p", "lfsr113"), (256, 512), (264, 528, 1056)),
    TriedShapes((), (128, 256, 512), (528, 16896, 33792)),
)
"""For 132 multiprocessors: for generators that local memory limits, as many work-groups as fit; then a few for each
multiprocessor; then many."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bytes", default=f"{2**30},{2**24}", help="sizes in bytes, separated by commas")
    parser.add_argument("--generators", default=",".join(GENERATORS))
    parser.add_argument(
        "--budget", type=float, help="minutes for each of three tunings; what is then not measured stays default"
    )
    parser.add_argument("--csv", type=Path, help="write the rows here too")
    parser.add_argument("--json", type=Path, help="write what was run, where and on what, and the summary here")
    arguments = parser.parse_args()
    names = tuple(arguments.generators.split(","))
    sizes = tuple(int(word) for word in arguments.bytes.split(","))
    for number, shapes in enumerate(TRIED):
        if names_here := tuple(name for name in names if shapes_for(name) is shapes):
            tune(arguments.out / str(number), shapes, names_here, sizes, arguments.budget)
    rows: list[Row] = []
    failed: list[str] = []
    try:
        for measured_row in measure(names, sizes, arguments.out, failed):
            rows.append(measured_row)  # noqa: PERF402  # the rows so far are shown and written after an error, too
    finally:
        console.print(shown(rows))
        summary = sums(rows)
        for line in summary:
            console.print(line)
        for line in failed:
            console.print(f"  did not run: {line}", markup=False)
        if arguments.csv:
            arguments.csv.write_text(csv_text(rows), encoding="utf-8")
        if arguments.json:
            run = facts() | {"rows": len(rows), "failed": failed, "summary": summary}
            arguments.json.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    return 1 if failed or not rows or any(row.misses for row in rows) else 0


def facts() -> dict[str, Any]:
    """The machine and the versions that the rows belong to."""
    import torch
    from cupy_backends.cuda.libs import curand

    target = choose("CUDA")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "device": target.name,
        "driver": target.driver,
        "torch": torch.__version__,
        "curand": curand.getVersion(),
        "rounds": ROUNDS,
        "command": " ".join(["python", *sys.argv]),
    }


def shapes_for(name: str) -> TriedShapes:
    """The launch shapes that are tried for a generator."""
    return next(shapes for shapes in TRIED if name in shapes.names or not shapes.names)


def tune(
    folder: Path, shapes: TriedShapes, names: tuple[str, ...], sizes: tuple[int, ...], budget: float | None
) -> None:
    began = time.monotonic()
    task = RandomTask(
        generators=names,
        value_types=("float", "double", "unsigned_int"),
        pattern="(float|double|poisson_unsigned_int)",
        blocks=shapes.blocks,
        grids=shapes.grids,
        bytes=sizes,
        dimensions=DIMENSIONS,
        grow=False,
    )
    with ProgressReport(Console(stderr=True)) as progress:
        outcome = tune_random(task, folder, device="CUDA", budget_minutes=budget, observe=progress)
    console.print(
        f"{outcome.target.name}, {time.strftime('%Y-%m-%d')}: {outcome.ledger.measured} launches tuned in"
        f" {time.monotonic() - began:.0f} s; health {outcome.health}; look at: {outcome.look_at or 'nothing'}"
    )
    failures: dict[str, int] = {}
    for cell in outcome.plan.measured:
        if not cell.measurement.ok:
            failure = f"{cell.problem.type.name} {cell.measurement.outcome.value} {cell.measurement.reason}"
            failures[failure] = failures.get(failure, 0) + 1
    for failure, count in failures.items():
        console.print(f"  did not run: {failure} ({count})")


def measure(names: tuple[str, ...], sizes: tuple[int, ...], folder: Path, failed: list[str]) -> Iterator[Row]:
    """The rows of all fills. A fill that could not be measured is added to `failed`."""
    import cupy
    import torch

    stream = torch.cuda.Stream()
    # CuPy calls cuRAND on CuPy's own current stream, even if cuRAND has another stream set.
    cupy.cuda.ExternalStream(stream.cuda_stream).use()
    for name in names:
        table = folder / str(TRIED.index(shapes_for(name))) / FILE_NAME
        for distribution, value_type in PAIRS:
            for size in sizes:
                dtype = {"float": torch.float32, "double": torch.float64}.get(value_type, torch.int32)
                out = torch.empty(size // dtype.itemsize, dtype=dtype, device="cuda")
                try:
                    with torch.cuda.stream(stream):
                        yield row(name, distribution, value_type, out, table, stream)
                except UserError as error:
                    failed.append(f"{name} {distribution} {value_type}: {str(error)[-300:]}")


def row(name: str, distribution: str, value_type: str, out: Any, table: Path, stream: Any) -> Row:
    dimensions = DIMENSIONS if "sobol" in name else 1
    with ExitStack() as opened:
        tuned = opened.enter_context(Generator(name, 1, ordering=_ordering(name), table=table, dimensions=dimensions))
        plain = opened.enter_context(Generator(name, 1, ordering=_ordering(name), dimensions=dimensions))
        calls: dict[str, Call] = {
            "ours": filling(tuned, distribution, out),
            "by default": filling(plain, distribution, out),
            "memset": out.zero_,
        }
        theirs = {ordering: f"cuRAND {ordering}" for ordering in orderings(name)}
        for ordering, key in theirs.items():
            if call := opened.enter_context(curand_call(name, ordering, distribution, value_type, out)):
                calls[key] = call
        seconds, host = timed(calls, stream)
        size = out.numel() * out.element_size()
        speed = {key: size / statistics.median(values) / 1e9 for key, values in seconds.items()}
        shape = str(tuned.launched.shape) if tuned.launched else "?"
    return Row(
        fill=Fill(name, distribution, value_type, size),
        shape=shape,
        ours=speed["ours"],
        by_default=speed["by default"],
        memset=speed["memset"],
        host=host["ours"],
        curand=tuple(
            CurandResult.of(ordering, speed[key], host[key], seconds[key], seconds["ours"])
            for ordering, key in theirs.items()
            if key in calls
        ),
    )


def orderings(name: str) -> tuple[str, ...]:
    """The orderings in which cuRAND's generator of this name is timed; empty if cuRAND has no such generator."""
    if name not in CURAND:
        return ()
    return (ONLY,) if "sobol" in name else tuple(ORDERINGS)


def _ordering(name: str) -> str:
    return "default" if "sobol" in name else "dynamic"


def filling(generator: Generator, distribution: str, out: Any) -> Call:
    if distribution == "poisson":
        return lambda: generator.poisson(out, 10.0)
    return lambda: getattr(generator, distribution)(out)


@contextmanager
def curand_call(name: str, ordering: str, distribution: str, value_type: str, out: Any) -> Iterator[Call | None]:
    """cuRAND's call that fills `out`; None, with a message, if cuRAND cannot do this fill in this ordering."""
    from cupy_backends.cuda.libs import curand

    generator = curand.createGenerator(CURAND[name])
    function, arguments = CALLS[distribution, value_type]
    generate = getattr(curand, function)
    count = out.numel()

    def call() -> None:
        generate(generator, out.data_ptr(), count, *arguments)

    try:
        yield call if _runs(curand, generator, name, ordering, call) else None
    finally:
        curand.destroyGenerator(generator)


def _runs(curand: Any, generator: int, name: str, ordering: str, call: Call) -> bool:
    try:
        if "sobol" in name:
            # CuPy lacks this function, but has loaded cuRAND's library.
            set_dimensions = ctypes.CDLL("libcurand.so.10").curandSetQuasiRandomGeneratorDimensions
            set_dimensions(ctypes.c_void_p(generator), DIMENSIONS)
        else:
            curand.setGeneratorOrdering(generator, ORDERINGS[ordering])
            curand.setPseudoRandomGeneratorSeed(generator, 1)
        call()
    except curand.CURANDError as error:
        console.print(f"  cuRAND has no {name} in the ordering {ordering}: {error}")
        return False
    return True


def timed(calls: dict[str, Call], stream: Any) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds a call for each round, with another call first in each round; and the host's seconds for each call."""
    import torch

    lengths, host = {}, {}
    for key, call in calls.items():
        call()
        host[key] = enqueued(call, stream)
        lengths[key] = max(3, min(60, round(BLOCK_SECONDS / max(block(call, 3, host[key], stream), 1e-7))))
    seconds: dict[str, list[float]] = {key: [] for key in calls}
    order = list(calls)
    for _ in range(ROUNDS):
        for key in order:
            seconds[key].append(block(calls[key], lengths[key], host[key], stream))
        order = order[1:] + order[:1]
    torch.cuda.synchronize()
    return seconds, host


def enqueued(call: Call, stream: Any) -> float:
    """Seconds in which the host enqueues a call: the median of 20 calls while the GPU is busy."""
    times = []
    for _ in range(20):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    stream.synchronize()
    return statistics.median(times)


def block(call: Call, count: int, host: float, stream: Any) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(int(GATE_HERTZ * GATE_MARGIN * ((count + 1) * host + 50e-6)))
    call()
    start.record(stream)
    for _ in range(count):
        call()
    end.record(stream)
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e-3 / count


if __name__ == "__main__":
    sys.exit(main())
