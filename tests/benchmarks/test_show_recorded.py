"""The figures on the pages are the recorded ones."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import show_recorded  # noqa: E402
from random_ratios import CurandResult, Fill, Row, csv_text, read_rows  # noqa: E402


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
def records(monkeypatch, tmp_path):
    monkeypatch.setattr(show_recorded, "RECORDED", tmp_path)
    for name in show_recorded.SHOWN:
        (tmp_path / name).mkdir()
    return tmp_path


def write(folder, **content):
    (folder / "run.json").write_text(json.dumps(content))


def test_a_record_takes_the_place_of_what_stood_between_its_marks(records):
    text = "before\n<!-- recorded gemm_bf16: begin -->\nold\n<!-- recorded gemm_bf16: end -->\nafter\n"
    assert "No record yet: `benchmarks/recorded/gemm_bf16/run` measures it." in show_recorded.page(text)
    family = {"family": "all", "count": 230, "geomean": 1.1234, "percentile_5": 0.98, "worst": 0.9}
    write(
        records / "gemm_bf16", device="H200", date="2026-11-22", driver="580", torch="2.11",
        summaries=[{**family, "vendor_chosen": 0.38, "own": None, "host": 0.96}],
    )  # fmt: skip
    text_shown = show_recorded.page(text)
    assert "| all | 230 | 1.123 | 0.980 | 0.900 | 38 % | - | 0.960 |" in text_shown
    assert "old" not in text_shown
    assert text_shown.startswith("before\n")
    assert text_shown.endswith("after\n")
    assert show_recorded.page(text_shown) == text_shown


def test_fills_name_the_ordering_that_their_ratio_is_to(records):
    folder = records / "random_vs_curand"
    write(folder, device="H200", date="2026-11-22", driver="580", curand=10410)
    (folder / "one_word.json").write_text(json.dumps({"date": "2026-11-23"}))
    dynamic, default = (
        CurandResult(name, 4290.0, 1e-5, ratio, 1.0, 1.1) for name, ratio in (("dynamic", 1.025), ("default", 2.0))
    )
    slow = replace(default, speed=2000.0)
    first = [
        row("xorwow", 4400.4, slow, dynamic),
        row("lfsr113", 3000.0),
        row("mtgp32", 1000.0, replace(slow, high=0.9)),
    ]
    (folder / "rows.csv").write_text(csv_text(first))
    (folder / "one_word.csv").write_text(csv_text([row("mtgp32", 2100.0, slow)]))
    text_shown = show_recorded.block("random_vs_curand")
    assert "| xorwow | 4400 (1.02 dynamic) | - |" in text_shown
    assert "| lfsr113 | 3000 | - |" in text_shown
    assert "| mtgp32 | 2100 (2.00 default) | - |" in text_shown, "what the second run measured anew"
    assert "H200, 2026-11-22 (mtgp32: 2026-11-23)" in text_shown
    assert "- no interval lies below 0.97" in text_shown


def row(generator, ours, *curand):
    return Row(Fill(generator, "uniform", "float", 1 << 24), "256x512", ours, ours, 4600.0, 2e-5, curand)


def test_rows_of_fills_come_back_from_their_table():
    both = tuple(CurandResult(name, 1000.0, 1e-5, 1.5, 1.25, 1.75) for name in ("default", "dynamic"))
    rows = [row("xorwow", 3000.0, *both), row("lfsr113", 2000.0)]
    assert read_rows(csv_text(rows)) == rows


def test_both_runs_of_both_sides_are_shown(records):
    side = {"name": "tunesmith", "cache": "none", "problems": 6, "configurations": 30.0, "seconds": 60.0}
    write(records / "tuning_beside_autotune", date="2026-11-22", triton="3.6", cores=16, sides=[side])
    text_shown = show_recorded.block("tuning_beside_autotune")
    assert "| tunesmith | none | 6 | 30.0 | 60.0 | 10.00 | 0.333 |" in text_shown
