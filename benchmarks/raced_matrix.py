"""Which of a CPU's own GEMM kernels is the fastest on each product of a list? A store to judge policies on.

    python benchmarks/raced_matrix.py LIST -o FOLDER [--budget MINUTES]

Twenty configurations of RegisterGemm (PACKED) and one of PortBlasGemm (BLOCK) race on every product; what is surely
slower is stopped early. The same command goes on with a stopped run. `tunesmith heuristics judge FOLDER` then measures
the fastest again, side by side with what policies choose.
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
        kinds = [
            gemm_type("s", transpose_a=a, transpose_b=b, use_beta=False) for a in (True, False) for b in (True, False)
        ]
        rows = read_gemm_list(path)
        self.problems = {kind: [Problem(kind, row.sizes(kind)) for row in rows if row.fits(kind)] for kind in kinds}

    def carry_out(self, run: Run) -> None:
        for kind, problems in self.problems.items():
            configs = list(self.configurations(kind))
            with run.batch(f"{kind.name}: {len(problems)} products", len(configs) * len(problems)):
                for problem in problems:
                    run.measure(kind).screen([configs], [problem], racing=True)

    def configurations(self, kind: ProblemType) -> Iterator[Configuration]:
        whole = KERNELS["RegisterGemm"].space(kind, self.target).defaults
        for (a, b), tiles in PACKED.items():
            for tile in tiles:
                yield whole | {"ThreadTile": tile, "WorkGroup": (1, 1, 1), "PackA": a, "PackB": b, "LoopUnroll": 8}
        yield KERNELS["PortBlasGemm"].space(kind, self.target).defaults | {"PortBlasAlgorithm": "non_local"} | BLOCK


def measured(about: str, plan: Callable[[Path], RunPlan]) -> tuple[Path, RunOutcome[RunPlan]]:
    """Carry out the plan for the list of the command line; its folder, and what came of it."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--budget", type=float)
    asked = parser.parse_args()
    with ProgressReport(messages, False) as progress:
        return asked.out, carry_out(plan(asked.list), asked.out, budget_minutes=asked.budget, observe=progress)


def main() -> None:
    _, done = measured(__doc__, RacePlan)
    print(f"{done.ledger.measured} measured, {done.ledger.reused} found, {done.seconds:.0f} s")
    print(*done.look_at, sep="\n")


if __name__ == "__main__":
    main()
