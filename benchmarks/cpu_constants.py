"""Which constants of the latency model and of RegisterGemm's mapping choose best on a CPU? Fitted on one list.

    python benchmarks/cpu_constants.py LIST -o FOLDER [--budget MINUTES]

All configurations of `raced_matrix.py` run side by side on every product of the list, in fifteen alternating blocks.
Then every combination of GRID decides the same products, and the functions of `tunesmith heuristics judge` score its
choices: one half of the blocks decides which solution is the fastest, the other half how fast it is. The output is the
best combinations, and for each value of a constant the mean and the best score of all combinations with this value.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

from raced_matrix import RacePlan, measured
from tunesmith.bench import Policy
from tunesmith.kernels import KERNELS
from tunesmith.models.intensity.policies import POLICIES, PolicyChoice, chips, latency, situation
from tunesmith.models.intensity.policies.mappings import register
from tunesmith.models.intensity.scoring import SelectionScore, TimeMatrix, scored
from tunesmith.records import Problem, Solution, Target
from tunesmith.session.frame.outputs import STORE
from tunesmith.session.frame.run import Run
from tunesmith.store import Store

FAMILY = KERNELS["RegisterGemm"]
GRID = {
    "memory's latency": (1e-7, 1e-8),
    "overhead of loads": (1.0, 0.3, 0.1),
    "packed from bytes": (8192, 16384, 32768, 65536),
    "reused": (64, 256, 1024),
    "reused across": (16, 32, 64),
}
SHOWN = 10


class SideBySide(RacePlan):
    """Measures all legal configurations of each product side by side, in alternating blocks."""

    policy = Policy(sampling_seconds=0.1, warm_up_seconds=0.003, confirm_blocks=15)

    def carry_out(self, run: Run) -> None:
        for problem_type, problems in self.problems.items():
            measure, configs = run.measure(problem_type), list(self.configurations(problem_type))
            for problem in problems:
                measure.confirm(
                    [config for config in configs if not measure.oracle.rejections_for(config, problem)], [problem]
                )


def matrix_of(store: Path) -> TimeMatrix:
    cells: dict[Problem, dict[Solution, tuple[float, ...]]] = defaultdict(dict)
    with Store.read(store) as opened:
        for entry in opened.entries(round_prefix="confirm/"):
            if entry.measurement.ok:
                cells[entry.problem][entry.solution] = entry.measurement.samples
    solutions = tuple(dict.fromkeys(solution for times in cells.values() for solution in times))
    first, second = (np.full((len(cells), len(solutions)), np.nan) for _ in range(2))
    for row, times in enumerate(cells.values()):
        for solution, samples in times.items():
            cell = row, solutions.index(solution)
            first[cell], second[cell] = (statistics.median(samples[half::2]) for half in (0, 1))
    return TimeMatrix(tuple(cells), tuple(map(str, cells)), solutions, np.sqrt(first * second), (first, second))


def score(matrix: TimeMatrix, target: Target, values: tuple[float, ...]) -> SelectionScore:
    """The score of the latency model with these values of GRID's constants."""
    waiting, overhead, packed, reused, across = values
    figures = dataclasses.replace(chips.figures_of(target), latency=waiting)
    with (
        patch.object(situation, "_figures", lambda _: figures),
        patch.dict(latency.ITEM_OVERHEAD, {"CPU": overhead}),
        patch.multiple(register, PACKED_BYTES=packed, REUSED=reused, REUSED_ACROSS=across),
    ):
        answers = [POLICIES["latency"].choose(problem, target, FAMILY) for problem in matrix.problems]
    return scored(
        matrix,
        [
            Solution(problem.type, FAMILY.name, answer.configuration) if isinstance(answer, PolicyChoice) else None
            for problem, answer in zip(matrix.problems, answers, strict=True)
        ],
    )


def lines(scores: dict[tuple[float, ...], SelectionScore]) -> Iterator[str]:
    for values in sorted(scores, key=lambda constants: -scores[constants].geomean)[:SHOWN]:
        yield f"{scores[values].geomean:.3f}, worst {scores[values].worst:.3f}: {dict(zip(GRID, values, strict=True))}"
    for number, (name, tried) in enumerate(GRID.items()):
        for value in tried:
            geomeans = [score.geomean for values, score in scores.items() if values[number] == value]
            yield f"{name} {value:g}: {statistics.fmean(geomeans):.3f} in the mean, {max(geomeans):.3f} at best"


def main() -> None:
    folder, done = measured(__doc__, SideBySide)
    matrix = matrix_of(folder / STORE)
    scores = {values: score(matrix, done.target, values) for values in itertools.product(*GRID.values())}
    print(f"{len(matrix.problems)} products, {len(matrix.solutions)} solutions", *lines(scores), sep="\n")


if __name__ == "__main__":
    main()
