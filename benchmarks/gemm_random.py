"""Are all GEMM families right, whatever they are asked? Random problems and configurations, verified by the bench.

    python benchmarks/gemm_random.py [--device CUDA] [--problems 500] [--seed 0] [--family TritonGemm ...] [--json OUT]

A problem is a random type (data types, transposes, batch, bias, activation, scales), random sizes (odd ones, ones,
small and middle ones), random leading dimensions and scalars. Each is given to every family that computes its type,
with a random configuration that is legal; what is verified is what `tunesmith tune` verifies. Prints, for each family,
how many problems came out how, and every one that was not right; exit code 1 where there is one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench_quality import job
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tunesmith.bench import Bench, Job, Policy
from tunesmith.devices import APIS, choose
from tunesmith.kernels import Kernel, families
from tunesmith.problems.gemm import ACTIVATIONS, DATA_TYPES, GemmOperation, gemm_type
from tunesmith.records import Configuration, Measurement, Outcome, Problem, ProblemType, Target

SHORT = Policy(minimum_samples=1, maximum_samples=6, sampling_seconds=0.0, warm_up_seconds=0.0, cold=False)
"""What is asked is whether it is right; the time is measured all the same, as little as possible."""

EXTENTS = (lambda draw: 1, lambda draw: draw.randint(2, 40), lambda draw: draw.randint(41, 300), lambda draw: 64)
LARGE = (512, 1024, 1536)
PER_FAMILY = 6
"""Configurations of a family and type, drawn once: compiling one takes longer than verifying it."""
TRIES = 300


def random_type(draw: random.Random) -> ProblemType:
    letter = draw.choice([letter for letter, known in DATA_TYPES.items() if known.dest])
    integers = DATA_TYPES[letter].sums == "int32"
    return gemm_type(
        letter,
        dest=draw.choice(DATA_TYPES[letter].dest),
        tf32=letter == "s" and draw.random() < 0.5,
        transpose_a=draw.random() < 0.5,
        transpose_b=draw.random() < 0.5,
        batched=draw.random() < 0.5,
        use_beta=draw.random() < 0.7,
        bias=draw.random() < 0.3,
        activation=draw.choice(("none", "relu") if integers else ACTIVATIONS) if draw.random() < 0.4 else "none",
        scaled=letter in ("f8", "b8") and draw.random() < 0.5,
    )


def random_problem(draw: random.Random, kind: ProblemType) -> Problem:
    m, n, k = (draw.choice(EXTENTS)(draw) for _ in range(3))
    if draw.random() < 0.2:
        m, n, k = (draw.choice((extent, draw.choice(LARGE))) for extent in (m, n, k))
    sizes = (m, n, draw.randint(1, 5), k) if "Batch" in kind.indices else (m, n, k)
    leading: tuple[int, ...] = ()
    if draw.random() < 0.6:
        step = draw.choice((1, 1, 8, 16))
        least = [extent for _, extent in GemmOperation().leading(kind, sizes)]
        leading = tuple(-(-(extent + draw.choice((0, 1, 7))) // step) * step for extent in least)
    integers = DATA_TYPES[kind.fields.word("DataType")].sums == "int32"
    alpha, beta = draw.choice((1.0, 2.0 if integers else 0.5)), draw.choice((0.0, 1.0, -3.0))
    uses_beta = kind.fields.flag("UseBeta")
    return Problem(kind, sizes, leading, Configuration({"alpha": alpha, "beta": beta if uses_beta else 0.0}))


class Pool:
    """Random legal configurations, by family and type."""

    def __init__(self, target: Target, draw: random.Random) -> None:
        self._target, self._draw = target, draw
        self._kept: dict[tuple[str, ProblemType], list[Configuration]] = {}

    def of(self, kernel: Kernel, problem: Problem) -> Configuration | None:
        """One that may run the problem; None where none of the pool does."""
        key = kernel.name, problem.type
        if key not in self._kept:
            self._kept[key] = list(self._drawn(kernel, problem.type))
        able = [one for one in self._kept[key] if not any(kernel.rejections_for(one, problem, self._target))]
        return self._draw.choice(able) if able else None

    def _drawn(self, kernel: Kernel, kind: ProblemType) -> Iterator[Configuration]:
        draw, space, found = self._draw, kernel.space(kind, self._target), 0
        for attempt in range(TRIES):
            varied = draw.sample(list(space), min(attempt % 5, len(space.parameters)))
            config = space.defaults | {one.name: draw.choice(one.values) for one in varied}
            if not any(kernel.rejections(config, kind, self._target)):
                yield config
                found += 1
            if found == PER_FAMILY:
                return


def jobs(target: Target, count: int, seed: int, names: list[str]) -> Iterator[tuple[Kernel, Configuration, Job]]:
    draw = random.Random(seed)
    pool = Pool(target, draw)
    able = [one for one in families("GEMM") if one.language in APIS[target.api].languages]
    wanted = [one for one in able if not names or one.name in names]
    for _ in range(count):
        problem = random_problem(draw, random_type(draw))
        for kernel in wanted:
            if config := pool.of(kernel, problem):
                yield kernel, config, job(kernel, config, problem, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    target = choose(asked.device)
    made = list(jobs(target, asked.problems, asked.seed, asked.family))
    of = {one.key: (kernel, config) for kernel, config, one in made}
    different = list({one.key: one for _, _, one in made}.values())
    console = Console()
    console.print(f"{len(different)} products of {asked.problems} problems on {target.name}, seed {asked.seed}")
    done: list[tuple[Job, Measurement]] = []
    with tempfile.TemporaryDirectory() as folder, Bench(target, SHORT, Path(folder)) as bench:
        results = bench.run([[one] for one in different], racing=False)
        done += track(results, "verifying", total=len(different), console=console)
    counts = Counter((of[one.key][0].name, ended(measurement)) for one, measurement in done)
    columns = sorted({end for _, end in counts}, key=lambda end: (end != Outcome.OK.value, end))
    table = Table("family", *columns)
    for name in sorted({name for name, _ in counts}):
        table.add_row(name, *(str(counts[name, end]) for end in columns))
    console.print(table)
    wrong = [(one, measurement) for one, measurement in done if not harmless(measurement)]
    for one, measurement in wrong:
        kernel, config = of[one.key]
        console.print(f"{kernel.name} {one.problem.type.name} {one.problem} {dict(one.problem.scalars)}", style="bold")
        console.print(f"  {ended(measurement)}: {measurement.detail.splitlines()[0] if measurement.detail else ''}")
        console.print(f"  {config}")
    if asked.json:
        document = {"device": target.name, "seed": asked.seed, "problems": asked.problems, "products": len(different)}
        document["ends"] = [{"family": name, "end": end, "count": count} for (name, end), count in counts.items()]
        asked.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


def ended(measurement: Measurement) -> str:
    if measurement.ok:
        return Outcome.OK.value
    return f"{measurement.outcome.value}: {measurement.reason}"


def harmless(measurement: Measurement) -> bool:
    """Right, or refused with a reason once the compiler had spoken."""
    return measurement.ok or measurement.outcome is Outcome.REJECTED


if __name__ == "__main__":
    sys.exit(main())
