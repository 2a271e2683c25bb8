"""The figures of the pages are what is recorded."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import show_recorded  # noqa: E402


def test_the_pages_show_what_is_recorded(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["show_recorded.py", "--check"])
    assert show_recorded.main() == 0, "run python benchmarks/show_recorded.py"


def test_every_record_that_is_shown_stands_on_a_page_and_has_a_command():
    text = "".join((ROOT / name).read_text() for name in show_recorded.PAGES)
    assert set(re.findall(r"<!-- recorded (\w+): begin -->", text)) == set(show_recorded.SHOWN)
    for name in show_recorded.SHOWN:
        assert (show_recorded.RECORDED / name / "run").is_file()
        assert (show_recorded.RECORDED / name / "README.md").is_file()


@pytest.fixture
def records(monkeypatch, tmp_path) -> Path:
    monkeypatch.setattr(show_recorded, "RECORDED", tmp_path)
    for name in show_recorded.SHOWN:
        (tmp_path / name).mkdir()
    return tmp_path


def write(folder: Path, **content: object) -> None:
    (folder / "run.json").write_text(json.dumps(content))


def test_a_record_takes_the_place_of_what_stood_between_its_marks(records):
    text = "before\n<!-- recorded gemm_bf16: begin -->\nold\n<!-- recorded gemm_bf16: end -->\nafter\n"
    assert "No record yet: `benchmarks/recorded/gemm_bf16/run` measures it." in show_recorded.page(text)
    family = {"family": "all", "count": 230, "geomean": 1.1234, "percentile_5": 0.98, "worst": 0.9}
    write(
        records / "gemm_bf16", device="H200", date="2026-11-22", driver="580", torch="2.11",
        summaries=[{**family, "vendor_chosen": 0.38, "own": None, "host": 0.96}],
    )  # fmt: skip
    made = show_recorded.page(text)
    assert "| all | 230 | 1.123 | 0.980 | 0.900 | 38 % | - | 0.960 |" in made
    assert "old" not in made
    assert made.startswith("before\n")
    assert made.endswith("after\n")
    assert show_recorded.page(made) == made


def test_fills_name_the_ordering_that_their_ratio_is_to(records):
    folder = records / "random_vs_curand"
    write(folder, device="H200", date="2026-11-22", driver="580", curand=10410, summary=["no interval lies below 0.97"])
    (folder / "rows.csv").write_text(
        "generator,distribution,value_type,bytes,ours,ordering,over_curand\n"
        "xorwow,uniform,float,16777216,4400.4,dynamic,1.025\nlfsr113,uniform,float,16777216,3000,,\n"
    )
    made = show_recorded.block("random_vs_curand")
    assert "| xorwow | 4400 (1.02 dynamic) | - |" in made
    assert "| lfsr113 | 3000 | - |" in made
    assert "- no interval lies below 0.97" in made


def test_both_runs_of_both_sides_are_shown(records):
    side = {"name": "tunesmith", "cache": "none", "problems": 6, "configurations": 30.0, "seconds": 60.0}
    write(records / "tuning_beside_autotune", date="2026-11-22", triton="3.6", cores=16, sides=[side])
    made = show_recorded.block("tuning_beside_autotune")
    assert "| tunesmith | none | 6 | 30.0 | 60.0 | 10.00 | 0.333 |" in made
