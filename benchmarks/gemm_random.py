"""Are the results of all GEMM families right? The bench verifies random problems with random configurations.

    python benchmarks/gemm_random.py [--device CUDA] [--problems 500] [--seed 0] [--family TritonGemm ...] [--json OUT]
    python benchmarks/gemm_random.py [--device CUDA] --stream-k 10000

A problem has a random type (data types, transposes, batch, bias, activation, scales), random sizes (1, odd, small and
middle sizes), random leading dimensions and scalars. Every family that computes the type gets the problem with a random
legal configuration. The verification is that of `tunesmith tune`. The output counts the outcomes of each family and
shows every product that was not right. The exit code is 1 if there is such a product; after ten the program stops.

With --stream-k, tiles are split: each product is a new problem on a few programs of each family with stream-K, with
another grid and another number of full tiles, until so many launches are verified. The exit code is 1 also if fewer are
verified. A launch is one execution of a plan, for each of the problem's checks and each of the poisons in D.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bench_quality import job
from tunesmith.bench import Batch, Bench, Job, Policy, Race
from tunesmith.bench.verification.poison import POISONS
from tunesmith.devices import APIS, choose
from tunesmith.kernels import Kernel, families_of
from tunesmith.models.stream_k.launch_decisions import FULL_TILES, GRID, SPLIT, with_decision
from tunesmith.problems.gemm import ACTIVATIONS, DATA_TYPES, GemmOperation, gemm_type
from tunesmith.records import Configuration, Measurement, Outcome, Problem, ProblemType, Target

SHORT = Policy(
    minimum_samples=1,
    maximum_samples=6,
    sampling_seconds=0.0,
    warm_up_seconds=0.0,
    cold=False,
    timeout_seconds=20.0,
)
"""As little timing as possible, since only the verification matters here."""
ENOUGH_WRONG = 10
"""Wrong products after which the program stops: a kernel that hangs takes the timeout twice."""

OPERATION = GemmOperation()

EXTENTS = (lambda draw: 1, lambda draw: draw.randint(2, 40), lambda draw: draw.randint(41, 300), lambda draw: 64)
LARGE = (512, 1024, 1536)
PER_FAMILY = 6
"""Configurations of a family and type, drawn once, since compiling a program takes longer than verifying it."""
TRIES = 300
PORTION = 250
"""Products that the bench gets at once."""

SIDES = (*EXTENTS, lambda draw: draw.randint(301, 700), lambda draw: 8 * draw.randint(8, 80))
"""M and N of products whose tiles are split: up to some thousand of the smallest tiles."""
DEPTHS = ((1, 64), (65, 600), (300, 4000), (300, 4000))
MOST_PRODUCTS = 10**8
"""The largest M N K batch, so that a verification takes milliseconds. DEPTHS are ranges of K."""
GRIDS = (4, 16, 64)
"""Upper limits of a random grid; once and twice the device's number of multiprocessors are two more."""
TYPES, PROGRAMS = 12, 3
"""Types of a family with stream-K, and programs of a type."""

Draw = random.Random


@dataclass(frozen=True)
class Product:
    """A family with a configuration on a problem."""

    kernel: Kernel
    config: Configuration
    job: Job

    @property
    def launches(self) -> int:
        """The number of launches that verify the product."""
        return len(OPERATION.checks(self.job.problem)) * len(POISONS)


def random_type(draw: Draw) -> ProblemType:
    letter = draw.choice([letter for letter, data_type in DATA_TYPES.items() if data_type.dest])
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


def random_sizes(draw: Draw) -> tuple[int, int, int, int]:
    """M, N, batch and K."""
    m, n, k = (draw.choice(EXTENTS)(draw) for _ in range(3))
    if draw.random() < 0.2:
        m, n, k = (draw.choice((extent, draw.choice(LARGE))) for extent in (m, n, k))
    return m, n, draw.randint(1, 5), k


def sizes_to_split(draw: Draw) -> tuple[int, int, int, int]:
    m, n, batch = draw.choice(SIDES)(draw), draw.choice(SIDES)(draw), draw.randint(1, 5)
    return m, n, batch, min(draw.randint(*draw.choice(DEPTHS)), MOST_PRODUCTS // (m * n * batch))


def random_problem(draw: Draw, problem_type: ProblemType, extents: tuple[int, int, int, int]) -> Problem:
    m, n, batch, k = extents
    sizes = (m, n, batch, k) if "Batch" in problem_type.indices else (m, n, k)
    leading: tuple[int, ...] = ()
    if draw.random() < 0.6:
        step = draw.choice((1, 1, 8, 16))
        least = [extent for _, extent in OPERATION.leading(problem_type, sizes)]
        leading = tuple(-(-(extent + draw.choice((0, 1, 7))) // step) * step for extent in least)
    integers = DATA_TYPES[problem_type.fields.word("DataType")].sums == "int32"
    alpha, beta = draw.choice((1.0, 2.0 if integers else 0.5)), draw.choice((0.0, 1.0, -3.0))
    uses_beta = problem_type.fields.flag("UseBeta")
    return Problem(problem_type, sizes, leading, Configuration({"alpha": alpha, "beta": beta if uses_beta else 0.0}))


class ConfigurationPool:
    """Random legal configurations, `each` for a family and type. `changed` maps a drawn configuration to another."""

    def __init__(
        self,
        target: Target,
        draw: Draw,
        each: int,
        changed: Callable[[Configuration], Configuration] = lambda config: config,
    ) -> None:
        self._target, self._draw, self._each, self._changed = target, draw, each, changed
        self._kept: dict[tuple[str, ProblemType], list[Configuration]] = {}

    def all_of(self, kernel: Kernel, problem_type: ProblemType) -> Sequence[Configuration]:
        key = kernel.name, problem_type
        if key not in self._kept:
            self._kept[key] = list(self._drawn(kernel, problem_type))
        return self._kept[key]

    def of(self, kernel: Kernel, problem: Problem) -> Configuration | None:
        """A random configuration of the pool that is legal for the problem; None if there is none."""
        configs = self.all_of(kernel, problem.type)
        able = [config for config in configs if not any(kernel.rejections_for(config, problem, self._target))]
        return self._draw.choice(able) if able else None

    def _drawn(self, kernel: Kernel, problem_type: ProblemType) -> Iterator[Configuration]:
        draw, space, legal = self._draw, kernel.space(problem_type, self._target), set[Configuration]()
        for attempt in range(TRIES):
            varied = draw.sample(list(space), min(attempt % 5, len(space.parameters)))
            config = self._changed(
                space.defaults | {parameter.name: draw.choice(parameter.values) for parameter in varied}
            )
            if config not in legal and not any(kernel.rejections(config, problem_type, self._target)):
                yield config
                legal.add(config)
            if len(legal) == self._each:
                return


def products(target: Target, draw: Draw, kernels: Sequence[Kernel], count: int) -> Iterator[Product]:
    pool = ConfigurationPool(target, draw, PER_FAMILY)
    for _ in range(count):
        problem = random_problem(draw, random_type(draw), random_sizes(draw))
        for kernel in kernels:
            if config := pool.of(kernel, problem):
                yield Product(kernel, config, job(kernel, config, problem))


class SplitProducts:
    """Random products whose tiles are split, on a few programs of each family."""

    def __init__(self, target: Target, draw: Draw, kernels: Sequence[Kernel]) -> None:
        self._target, self._draw = target, draw
        self._pool = ConfigurationPool(target, draw, PROGRAMS, lambda config: split(config, 2, 0))
        self._types = {kernel: list(islice(self._types_of(kernel), TYPES)) for kernel in kernels}

    def __iter__(self) -> Iterator[Product]:
        """Products without end, of each family in turn that can split tiles; none if no family can."""
        for kernel in cycle([kernel for kernel, types in self._types.items() if types]):
            yield from islice(filter(None, (self._drawn(kernel) for _ in range(TRIES))), 1)

    def _types_of(self, kernel: Kernel) -> Iterator[ProblemType]:
        for problem_type in {random_type(self._draw): None for _ in range(TRIES)}:
            if GRID in kernel.space(problem_type, self._target).defaults and self._pool.all_of(kernel, problem_type):
                yield problem_type

    def _drawn(self, kernel: Kernel) -> Product | None:
        problem_type = self._draw.choice(self._types[kernel])
        problem = random_problem(self._draw, problem_type, sizes_to_split(self._draw))
        program = self._pool.of(kernel, problem)
        config = program and self._launched(kernel, program, problem)
        if not (program and config):
            return None
        return Product(kernel, config, job(kernel, config, problem))

    def _launched(self, kernel: Kernel, program: Configuration, problem: Problem) -> Configuration | None:
        """The program with a random grid and a random number of full tiles; None if this is not legal."""
        units = self._target.compute_units
        most = self._draw.choice((*GRIDS, units, 2 * units))
        config = split(program, self._draw.randint(1, most), self._draw.choice((-1, 0, 1, 2)))
        refused = any(kernel.rejections(config, problem.type, self._target))
        return None if refused or any(kernel.rejections_for(config, problem, self._target)) else config


def split(config: Configuration, grid: int, full_tiles: int) -> Configuration:
    return with_decision(config, Configuration({GRID: grid, FULL_TILES: full_tiles, SPLIT: 1}))


def measured(bench: Bench, products_left: Iterator[Product], launches: int) -> Iterator[tuple[Product, Measurement]]:
    """Products with their measurements, in portions, until `launches` launches are verified or no product is left."""
    while portion := {product.job.key: product for product in next_portion(products_left, launches)}:
        for finished, measurement in bench.run(Batch(tuple(Race((product.job,)) for product in portion.values()))):
            product = portion[finished.key]
            launches -= verified(product, measurement)
            yield product, measurement


def next_portion(products_left: Iterator[Product], launches: int) -> Iterator[Product]:
    for _ in range(PORTION):
        if launches > 0 and (product := next(products_left, None)):
            launches -= product.launches
            yield product


def verified(product: Product, measurement: Measurement) -> int:
    """How many launches of the product were found right: none if the bench had verified the product before."""
    return product.launches if measurement.ok and measurement.cost.verify else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--stream-k", type=int, default=0, metavar="LAUNCHES")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    target, draw, console = choose(options.device), Draw(options.seed), Console()
    runnable = [kernel for kernel in families_of("GEMM") if kernel.language in APIS[target.api].languages]
    kernels = [kernel for kernel in runnable if not options.family or kernel.name in options.family]
    products_left: Iterator[Product]
    if options.stream_k:
        # A product has several launches, so these products are enough unless almost all are rejected.
        products_left, launches = islice(SplitProducts(target, draw, kernels), options.stream_k), options.stream_k
        console.print(f"{launches} launches with split tiles on {target.name}, seed {options.seed}")
    else:
        different = {product.job.key: product for product in products(target, draw, kernels, options.problems)}
        products_left, launches = iter(different.values()), sum(product.launches for product in different.values())
        problems = f"{options.problems} problems on {target.name}, seed {options.seed}"
        console.print(f"{len(different)} products of {problems}")
    tally = Tally()
    for product, measurement in with_a_bar(target, products_left, launches, console):
        tally.add(product, measurement)
        if not harmless(measurement):
            show(product, measurement, console)
        if tally.wrong == ENOUGH_WRONG:
            break
    console.print(tally.table())
    console.print(f"{tally.launches.total()} launches verified")
    if options.json:
        asked_for = {"stream_k": options.stream_k} if options.stream_k else {"problems": options.problems}
        facts = {"device": target.name, "seed": options.seed} | asked_for | tally.facts()
        options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return 1 if tally.wrong or tally.launches.total() < options.stream_k else 0


def with_a_bar(
    target: Target, products_left: Iterator[Product], launches: int, console: Console
) -> Iterator[tuple[Product, Measurement]]:
    """Products with their measurements, while a bar shows the verified launches and their number a second."""
    rate = TextColumn("{task.fields[rate]:.0f}/s")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with (
        tempfile.TemporaryDirectory() as folder,
        Bench(target, SHORT, Path(folder)) as bench,
        Progress(*columns, console=console) as progress,
    ):
        bar = progress.add_task("launches verified", total=launches, rate=0.0)
        for product, measurement in measured(bench, products_left, launches):
            progress.advance(bar, verified(product, measurement))
            task = progress.tasks[bar]
            progress.update(bar, rate=task.completed / (task.elapsed or 1.0))
            yield product, measurement


@dataclass
class Tally:
    """Counts of outcomes by family, of verified launches by family, and of products that were not right."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    wrong: int = 0

    def add(self, product: Product, measurement: Measurement) -> None:
        name = product.kernel.name
        self.ends[name, ended(measurement)] += 1
        self.launches[name] += verified(product, measurement)
        self.wrong += not harmless(measurement)

    def table(self) -> Table:
        columns = sorted({end for _, end in self.ends}, key=lambda end: (end != Outcome.OK.value, end))
        table = Table("family", *columns, "launches verified")
        for name in sorted(self.launches):
            table.add_row(name, *(str(self.ends[name, end]) for end in columns), str(self.launches[name]))
        return table

    def facts(self) -> dict[str, object]:
        ends = [{"family": name, "end": end, "count": count} for (name, end), count in self.ends.items()]
        return {"products": self.ends.total(), "launches": self.launches.total(), "ends": ends}


def show(product: Product, measurement: Measurement, console: Console) -> None:
    problem = product.job.problem
    console.print(f"{product.kernel.name} {problem.type.name} {problem} {dict(problem.scalars)}", style="bold")
    console.print(f"  {ended(measurement)}: {measurement.detail.splitlines()[0] if measurement.detail else ''}")
    console.print(f"  {product.config}")


def ended(measurement: Measurement) -> str:
    if measurement.ok:
        return Outcome.OK.value
    return f"{measurement.outcome.value}: {measurement.reason}"


def harmless(measurement: Measurement) -> bool:
    """Whether the product was right, or was rejected with a reason after compilation."""
    return measurement.ok or measurement.outcome is Outcome.REJECTED


if __name__ == "__main__":
    sys.exit(main())
