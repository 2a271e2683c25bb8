"""How well a model of the package chooses for a device or a data type that it was not taught: a sibling.

    python benchmarks/sibling_choices.py nvidia-h200-bf16 RUN... --plans PLANS.csv [--sizes LIST.csv]

RUN are stores, folders that hold one, or tables of finals: times on another device of the model's architecture, or in a
data type that is as fast. For each caution, in multiples of the model's own, and with and without what the sibling's
library says of itself (PLANS, by `tunesmith heuristics plans`), the table has the best time over that of the choice,
the library's time over that of the choice, and how many choices are below 0.97 of the library's speed. Nothing is
measured.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tunesmith.kernels import VENDOR
from tunesmith.logic import read_shipped_model, shipped_file
from tunesmith.models.choice.model import ChoiceModel, ExpectedTimes
from tunesmith.models.choice.model_file import model_of
from tunesmith.problems.gemm import equally_fast
from tunesmith.records import LibraryPlan, Problem, ProblemType, Solution
from tunesmith.session.heuristics.matrices import JudgedSubject, MatrixTask, read_matrices

FACTORS = 0.5, 1.0, 1.5, 2.0, 2.5, 3.0
REGRETTED = 0.97


@dataclass(frozen=True)
class JudgedChoice:
    """A choice for a product: the best time and the library's time over its own."""

    efficiency: float
    gain: float


def model_named(name: str) -> ChoiceModel:
    if (path := shipped_file(name)) is None:
        raise SystemExit(f"{name} is no file of the package")
    return model_of(read_shipped_model(path), str(path))


def type_known_to(model: ChoiceModel, kind: ProblemType) -> ProblemType | None:
    """The type itself, or the one that is as fast, of which the model has solutions."""
    return next((other for other in (kind, equally_fast(kind)) if other and other.name in model.types), None)


def choices(model: ChoiceModel, subject: JudgedSubject, with_plans: bool) -> Iterator[JudgedChoice]:
    """The model's first choice that ran, for each product that the library ran, too."""
    matrix = subject.matrix
    known: dict[ProblemType, ExpectedTimes] = {}
    for row, problem in enumerate(matrix.problems):
        kind = type_known_to(model, problem.type)
        if kind is None:
            continue
        solutions = model.solutions_of(kind)
        times = known.setdefault(kind, model.times_of(kind, solutions))
        seconds = {
            solution: matrix.seconds[row, column]
            for solution, column in matrix.columns.items()
            if math.isfinite(matrix.seconds[row, column])
        }
        plan = matrix.plans.get(problem) if with_plans else None
        chosen = _first_that_ran(times, solutions, seconds, problem, kind, plan)
        library = [second for solution, second in seconds.items() if solution.kernel == VENDOR]
        if chosen is not None and library:
            yield JudgedChoice(min(seconds.values()) / chosen, library[0] / chosen)


def _first_that_ran(
    times: ExpectedTimes,
    solutions: tuple[Solution, ...],
    seconds: dict[Solution, float],
    problem: Problem,
    kind: ProblemType,
    plan: LibraryPlan | None,
) -> float | None:
    ranked = times.ranked(replace(problem, type=kind), plan)
    asked = (replace(solutions[time.solution], type=problem.type) for time in ranked)
    return next((seconds[solution] for solution in asked if solution in seconds), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="NAME")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--plans", action="append", type=Path, default=[])
    parser.add_argument("--sizes", action="append", type=Path, default=[])
    options = parser.parse_args()
    model = model_named(options.model)
    task = MatrixTask(tuple(options.runs), tuple(options.sizes), with_vendor=True, plans=tuple(options.plans))
    table = Table("caution", "plans", "products", "best / choice", "10th %", "library / choice", "below 0.97", "least")
    for subject in read_matrices(task).subjects:
        for factor in FACTORS:
            cautious = replace(model, caution=factor * model.caution)
            for with_plans in (False, True) if subject.matrix.plans else (False,):
                found = list(choices(cautious, subject, with_plans))
                efficiencies, gains = (np.array([getattr(x, name) for x in found]) for name in ("efficiency", "gain"))
                table.add_row(
                    f"{factor:g} times",
                    "with" if with_plans else "without",
                    str(len(found)),
                    f"{math.exp(np.log(efficiencies).mean()):.4f}",
                    f"{np.quantile(efficiencies, 0.1):.3f}",
                    f"{math.exp(np.log(gains).mean()):.4f}",
                    str(np.count_nonzero(gains < REGRETTED)),
                    f"{gains.min():.3f}",
                )
        print(f"{options.model} (caution {model.caution:g}) chooses for {subject}")
    Console(highlight=False, width=120).print(table)


if __name__ == "__main__":
    main()
