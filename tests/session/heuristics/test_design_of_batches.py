"""`heuristics design --batched` writes a list of batches, and a model of batches is taught by batches."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from packaged_logic import packaged_model
from tunesmith.cli.app import app
from tunesmith.models.choice.design.design import BATCHED_NAMES, SINGLE_NAMES
from tunesmith.models.choice.learning import products_to_learn
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


@pytest.mark.parametrize(
    ("name", "families"), [("nvidia-h200-bf16-batched", BATCHED_NAMES), ("nvidia-h200-tf32", SINGLE_NAMES)]
)
def test_what_a_model_is_to_learn_is_of_all_families_that_its_types_compute(name, families):
    rows = products_to_learn(packaged_model(name), 60, 1)
    assert {row.family for row in rows} == set(families)
