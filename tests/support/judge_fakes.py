"""A run on the fake device to judge policies by, and how tiles become parameters of the fake family."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tunesmith import session
from tunesmith.bench import Policy
from tunesmith.logic import details_of
from tunesmith.models.intensity.policies.mappings import MAPPINGS, FamilyMapping
from tunesmith.models.intensity.policies.mappings.base import blocking_of, blockings
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value
from tunesmith.session.heuristics.matrices import MatrixTask, read_matrices
from tuning_runs import fake_file

DEVICE = "fake:GPU:8"
QUICK = Policy(sampling_seconds=0.01, warm_up_seconds=0.001, confirm_blocks=6, compile_processes=1)
SIZES = ((64, 64, 64), (128, 64, 32), (96, 96, 64), (256, 128, 64))
TUNING = f"""
GlobalParameters: {{CompileProcesses: 1, ConfirmBlocks: 7, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}}
BenchmarkProblems:
  - - {{OperationType: GEMM, DataType: s, TransposeB: False}}
    - InitialSolutionParameters: [{{KernelLanguage: [fake]}}]
      ForkParameters:
        - ThreadTile: [[4, 4], [8, 8]]
        - VectorWidth: [1, 4]
      BenchmarkFinalParameters:
        - ProblemSizes: [{", ".join(f"{{Exact: {list(size)}}}" for size in SIZES)}]
"""
GROUPS, ITEMS = ((8, 8), (16, 8), (16, 16)), ((2, 2), (4, 4), (8, 4), (8, 8))


class FakeMapping(FamilyMapping):
    """WorkGroup x ThreadTile."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        group, item = blocking_of(wish, GROUPS, ITEMS)
        return {"WorkGroup": (*group, 1), "ThreadTile": item}

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return blockings(GROUPS, ITEMS, 8)


@pytest.fixture
def fake_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies know the fake family within the test."""
    monkeypatch.setitem(MAPPINGS._own, "FakeGemm", "judge_fakes:FakeMapping")


def tuned(folder: Path) -> Path:
    """The folder of a finished run."""
    session.tune(fake_file(folder, TUNING), folder / "run", device=DEVICE)
    return folder / "run"


def tables(run: Path) -> list[Path]:
    return sorted((run / "tables").glob("*/*_Final.csv"))


def seconds_of(path: Path, **more: object) -> dict[tuple[tuple[int, ...], str], float]:
    (subject,) = read_matrices(MatrixTask((path,), **more)).subjects  # type: ignore[arg-type]
    matrix = subject.matrix
    return {
        (matrix.problems[row].sizes, f"{solution.kernel} {solution.configuration.to_json()}"): matrix.seconds[
            row, column
        ]
        for row in range(len(matrix.problems))
        for column, solution in enumerate(matrix.solutions)
        if matrix.seconds[row, column] > 0
    }


def without_columns(table: Path) -> None:
    """As details were before programs could read them."""
    path = details_of(table)
    rows = list(csv.reader(path.open()))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(row[:-4] for row in rows)
