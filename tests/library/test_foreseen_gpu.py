"""What cuBLAS says of a product before it computes it, on a GPU."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cuda_runner import cuda_device
from tunesmith.cli.app import app
from tunesmith.library.launch._launcher import Launcher
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.gemm.listed import ListedGemm, gemm_list_text
from tunesmith.records import Problem
from tunesmith.session.heuristics.plans import read_plans

pytestmark = pytest.mark.gpu


@pytest.fixture
def launcher():
    return Launcher(cuda_device(), {}, {})


@pytest.mark.parametrize("letter", ["b", "h", "s"])
@pytest.mark.parametrize("batched", [False, True])
def test_cublas_says_how_it_would_compute_a_product(launcher, letter, batched):
    kind = gemm_type(letter, transpose_a=True, transpose_b=False, batched=batched, use_beta=False)
    sizes = (4096, 4096, 2, 4096) if batched else (4096, 4096, 4096)
    plan = launcher.foreseen(Problem(kind, sizes))
    assert plan.algorithm > 0
    assert plan.parts >= 1
    assert 1 < plan.waves < 64
    assert launcher.foreseen(Problem(kind, sizes)) == plan


def test_a_long_sum_for_a_few_results_is_computed_in_parts(launcher):
    kind = gemm_type("b", transpose_a=True, transpose_b=False, use_beta=False)
    assert launcher.foreseen(Problem(kind, (64, 64, 100_000))).parts > 1
    assert launcher.foreseen(Problem(kind, (4096, 4096, 512))).parts == 1


def test_what_cublas_does_not_compute_has_no_plan(launcher):
    kind = gemm_type("b8", transpose_a=True, transpose_b=False, use_beta=False)
    assert launcher.foreseen(Problem(kind, (64, 64, 64))) is None


def test_the_command_writes_the_plans_of_a_list(launcher, tmp_path):
    rows = [ListedGemm(16, 4096, 4096, trans_b=True), ListedGemm(300, 77, 512), ListedGemm(64, 64, 64, batch=5)]
    (tmp_path / "list.csv").write_text(gemm_list_text(rows))
    words = ["heuristics", "plans", str(tmp_path / "list.csv"), "-o", str(tmp_path / "plans.csv"), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["products"] == 3
    assert [product.row for product in read_plans([tmp_path / "plans.csv"])] == rows
