"""Which of our GEMM kernels for a CPU is the fastest on each product of a list? Makes a store for judging policies.

    python benchmarks/raced_matrix.py LIST -o FOLDER [--budget MINUTES]

Twenty configurations of RegisterGemm (PACKED) and one of PortBlasGemm (BLOCK) race on every product; a configuration
that is clearly slower is stopped early. The same command continues a stopped run. `tunesmith heuristics judge FOLDER`
then measures the fastest again, side by side with the policies' choices.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.cli.output import messages
from tunesmith.devices import choose
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.gemm.listed import read_gemm_list
from tunesmith.records import Configuration, Problem, ProblemType
from tunesmith.report import ProgressReport
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.run import Run, RunPlan, carry_out

PACKED = {
    (False, False): ((16, 1), (16, 4), (16, 8), (32, 4), (32, 8), (48, 8)),
    (True, False): ((16, 4), (16, 8), (32, 4), (32, 8), (48, 8), (64, 4), (64, 6)),
    (True, True): ((16, 8), (32, 8), (32, 12), (48, 8), (64, 6)),
    (False, True): ((16, 8), (48, 8)),
}
"""Thread tiles by whether A and B are copied into panels first."""
BLOCK = {"WorkItem": (16, 4), "WorkGroup": (4, 4, 1), "Vectorization": "partial", "VectorSize": 4}
RACED = Policy(noise=0.05, sampling_seconds=0.02, warm_up_seconds=0.003, minimum_samples=5, confirm_blocks=7)


class RacePlan(RunPlan):
    """A race for each product of the list."""

    policy = RACED

    def __init__(self, path: Path) -> None:
        self.file, self.target = path, choose("CPU")
        problem_types = [
            gemm_type("s", transpose_a=transpose_a, transpose_b=transpose_b, use_beta=False)
            for transpose_a in (True, False)
            for transpose_b in (True, False)
        ]
        rows = read_gemm_list(path)
        self.problems = {
            problem_type: [Problem(problem_type, row.sizes(problem_type)) for row in rows if row.fits(problem_type)]
            for problem_type in problem_types
        }

    def carry_out(self, run: Run) -> None:
        for problem_type, problems in self.problems.items():
            configs = list(self.configurations(problem_type))
            with run.batch(f"{problem_type.name}: {len(problems)} products", len(configs) * len(problems)):
                for problem in problems:
                    run.measure(problem_type).screen([configs], [problem], racing=True)

    def configurations(self, problem_type: ProblemType) -> Iterator[Configuration]:
        whole = KERNELS["RegisterGemm"].space(problem_type, self.target).defaults
        for (pack_a, pack_b), tiles in PACKED.items():
            for tile in tiles:
                yield whole | {
                    "ThreadTile": tile,
                    "WorkGroup": (1, 1, 1),
                    "PackA": pack_a,
                    "PackB": pack_b,
                    "LoopUnroll": 8,
                }
        yield (
            KERNELS["PortBlasGemm"].space(problem_type, self.target).defaults
            | {"PortBlasAlgorithm": "non_local"}
            | BLOCK
        )


def measured(about: str, plan: Callable[[Path], RunPlan]) -> tuple[Path, RunOutcome[RunPlan]]:
    """Carry out the plan for the list on the command line, and return the folder and the outcome."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--budget", type=float)
    options = parser.parse_args()
    with ProgressReport(messages, False) as progress:
        return options.out, carry_out(plan(options.list), options.out, budget_minutes=options.budget, observe=progress)


def main() -> None:
    _, done = measured(__doc__, RacePlan)
    print(f"{done.ledger.measured} measured, {done.ledger.reused} found, {done.seconds:.0f} s")
    print(*done.look_at, sep="\n")


if __name__ == "__main__":
    main()
