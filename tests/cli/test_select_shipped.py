"""`tunesmith select` says what the logic in the package chooses, also where its device is absent."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from packaged_logic import without_settings
from tunesmith.cli.app import app
from tunesmith.logic import read_shipped, shipped_file
from tunesmith.records import UserError

without_a_setting = pytest.fixture(autouse=True)(without_settings)


def select(*words):
    return CliRunner().invoke(app, ["select", *map(str, words)])


def measured(name, kind):
    """A size that a file of the package has times of."""
    found = read_shipped(shipped_file(name))
    return dict(zip(found.head.types, found.logics, strict=True))[kind].document.rows[0].sizes


@pytest.mark.parametrize(
    ("name", "sizes", "rule"),
    [
        (["nvidia-h200-bf16/Cij_Aki_Bkj_B"], (4096, 24, 4096), "predicted"),
        (["nvidia-h200-bf16-batched", "--type", "Cijk_Alik_Bljk_B"], (197, 197, 192, 64), "predicted"),
        (["nvidia-h100-bf16/Cij_Aki_Bkj_B"], measured("nvidia-h100-bf16", "Cij_Aki_Bkj_B"), "exact"),
    ],
)
def test_a_name_of_the_package_is_a_logic_like_others(name, sizes, rule):
    result = select(*name, "--json", "--size", *sizes)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["rule"], tuple(document["sizes"])) == (rule, sizes)
    assert document["expected_seconds"] > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nvidia-h200-bf16", "--type: name one problem type of Cij_Aik_Bjk_B, Cij_Aik_Bkj_B, Cij_Aki_Bkj_B"),
        (
            "nvidia-h200-bf16/Cij",
            "names no logic that ships with tunesmith; name one of nvidia-h200-bf16/Cij_Aik_Bjk_B",
        ),
        ("nvidia-h300", "no logic of that name ships with tunesmith; name a path, or one of nvidia-h100-bf16, "),
    ],
)
def test_a_name_that_is_of_no_single_logic_is_a_mistake(name, message):
    failed = select(name, "--size", 64, 64, 64)
    assert isinstance(failed.exception, UserError)
    assert message in str(failed.exception)


def test_a_file_or_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nvidia-h200-bf16").write_text("no logic")
    assert "nvidia-h200-bf16:1: is no library logic of tunesmith" in str(
        select("nvidia-h200-bf16", "--size", 64, 64, 64).exception
    )
    (tmp_path / "nvidia-h200-fp8").mkdir()
    assert "holds no library logic" in str(select("nvidia-h200-fp8", "--size", 64, 64, 64).exception)
    within = select("nvidia-h200-fp8/Cij_Aki_Bkj_F8B_ScaleAB", "--size", 64, 64, 64)
    assert "is not there, and no logic of that name ships" in str(within.exception)
