"""`heuristics design --batched` writes a list of batches."""

from __future__ import annotations

from typer.testing import CliRunner

from tunesmith.cli.app import app
from tunesmith.problems.gemm.listed import read_gemm_list


def design(*words):
    return CliRunner().invoke(app, ["heuristics", "design", "--batched", *map(str, words)])


def test_every_product_is_a_batch(tmp_path):
    assert design("--count", 12, "-o", tmp_path / "batches.csv").exit_code == 0
    rows = read_gemm_list(tmp_path / "batches.csv")
    assert len(rows) == 12
    assert min(row.batch for row in rows) > 1


def test_families_say_by_themselves_whether_they_are_of_batches(tmp_path):
    failed = design("--family", "deep", "-o", tmp_path / "batches.csv")
    assert "--batched: means nothing beside --family" in str(failed.exception)
    assert not (tmp_path / "batches.csv").exists()
