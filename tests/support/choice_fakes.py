"""Products of three families that are tuned on the fake device, so that a choice model can be fitted to them."""

from __future__ import annotations

from pathlib import Path

from tunesmith import session
from tunesmith.problems.gemm.listed import ListedGemm, gemm_list_text
from tuning_runs import fake_file

DEVICE = "fake:GPU:8"
SIZES = (16, 33, 64, 100, 200)
FAMILIES = ("square", "few", "deep")
TUNING = """
GlobalParameters: {CompileProcesses: 1, ConfirmBlocks: 7, WarmUpSeconds: 0.001, SamplingSeconds: 0.005}
BenchmarkProblems:
  - - {OperationType: GEMM, DataType: s, TransposeB: False}
    - InitialSolutionParameters: [{KernelLanguage: [fake]}]
      ForkParameters:
        - ThreadTile: [[2, 2], [4, 4], [8, 8]]
        - GlobalSplitU: [1, 4]
      BenchmarkFinalParameters:
        - ProblemSizes: [{File: list.csv}]
"""


def products() -> list[ListedGemm]:
    """Twelve products of each family."""
    square = [ListedGemm(m, n, 64, family="square") for m in SIZES[1:] for n in (24, 80, 250)]
    few = [
        ListedGemm(m, n, k, family="few")
        for m in (1, 4, 9)
        for n, k in zip(SIZES[1:], reversed(SIZES[:4]), strict=True)
    ]
    deep = [ListedGemm(m, 17, 8 * k, family="deep") for m in (8, 16, 48) for k in SIZES[:4]]
    return [*square, *few, *deep]


def tuned(folder: Path) -> tuple[Path, Path]:
    """The folder of a finished run, and its list with families."""
    listed = folder / "list.csv"
    listed.write_text(gemm_list_text(products()))
    session.tune(fake_file(folder, TUNING), folder / "run", device=DEVICE)
    return folder / "run", listed
