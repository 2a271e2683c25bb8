"""`benchmarks/held_out.py`: the number of asked neighbours is fitted on one run and scored on another."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

import held_out as benchmark
from golden_bench import nothing_measured
from tunesmith.kernels import KERNELS
from tunesmith.logic import Document, NamedSolution, Origin, SizeRow, neighbours
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, Solution, UserError
from tunesmith.session import tune
from tuning_runs import FAKE, fake_file

KIND = gemm_type()
ORIGIN = Origin("OpenCL", "a device", "CPU", "x86-64", "1", "x", "0", "today")
SMALL, LARGE, VENDOR = (
    Solution(KIND, kernel, KERNELS[kernel].space(KIND).defaults | Configuration(values))
    for kernel, values in (("TiledGemm", {"DepthU": 8}), ("TiledGemm", {"DepthU": 16}), ("VendorBlas", {}))
)
WINNERS = {(16,) * 3: 0, (32,) * 3: 0, (64,) * 3: 0, (512,) * 3: 1, (1024,) * 3: 1, (2048,) * 3: 1}


def document():
    rows = tuple(
        SizeRow(size, (), winner, Estimate(1e-3, 1e-3, 1e-3, 7), 1.0, others={1 - winner: 2e-3})
        for size, winner in WINNERS.items()
    )
    return Document(ORIGIN, KIND, (NamedSolution("small", SMALL), NamedSolution("large", LARGE)), rows, 0)


def times(sizes, ours=(1.0, 2.0), vendor=None):
    """Times by size: SMALL is faster below 256, LARGE from 256 on."""
    times_by_size = {}
    for size in sizes:
        small = size[0] < 256
        times_by_size[size, ()] = {SMALL: ours[not small], LARGE: ours[small]} | ({VENDOR: vendor} if vendor else {})
    return times_by_size


INSIDE = times(WINNERS)


def test_efficiency_is_beside_the_best_that_the_other_run_found_and_known_sizes_do_not_count():
    second_times = times([(24,) * 3, (1500,) * 3, (32,) * 3], vendor=0.5)
    score = benchmark.scored([(document(), INSIDE)], [second_times], 1)
    assert (score.fitted, score.sizes, score.vendors) == (1.0, 2, 2)
    assert score.scored == score.worst == pytest.approx(0.5), "the vendor's is the best of what was measured"
    assert score.over_vendor == pytest.approx(0.5)


def test_the_number_of_sizes_that_are_asked_changes_what_is_chosen():
    """The large solution is a little faster at the nearest size, and far slower at the next sizes."""
    close = SizeRow((80,) * 3, (), 1, Estimate(1e-3, 1e-3, 1e-3, 7), 1.0, others={0: 1.01e-3})
    slower = (replace(row, others={1: 1.0}) if row.solution == 0 else row for row in document().rows)
    logic = replace(document(), rows=(close, *slower))
    second_times = times([(100,) * 3])
    with_one, with_six = (benchmark.scored([(logic, INSIDE)], [second_times], count).scored for count in (1, 6))
    assert (with_one, with_six) == (pytest.approx(0.5), pytest.approx(1.0))
    assert neighbours.NEAREST_COUNT == 4, "as it was"


def test_runs_without_a_size_in_common_words_are_refused():
    with pytest.raises(UserError, match="no size of it is one that FIRST chooses for"):
        benchmark.scored([(document(), INSIDE)], [{}], 4)


def test_two_runs_are_read_and_scored(tmp_path, monkeypatch, capsys):
    sizes = "            - Exact: [32, 32, 32]\n            - Exact: [128, 64, 32]\n"
    assert sizes in FAKE
    folders = []
    for name, exact in {"first": (32, 64, 128, 48), "second": (40, 96)}.items():
        text = FAKE.replace(sizes, "".join(f"            - Exact: [{n}, {n}, {n}]\n" for n in exact))
        folders.append(tmp_path / name)
        with nothing_measured():
            tune(fake_file(tmp_path, text, f"{name}.yaml"), folders[-1], device="fake:GPU:8")
    written = tmp_path / "result.json"
    monkeypatch.setattr(sys, "argv", ["held_out.py", *map(str, folders), "--json", str(written)])
    assert benchmark.main() == 0
    result = json.loads(written.read_text())
    assert [row["asked"] for row in result["rows"]] == list(benchmark.ASKED)
    assert {row["sizes"] for row in result["rows"]} == {2}
    assert all(0 < row["worst"] <= row["scored"] <= 1 for row in result["rows"])
    assert "fitted" in capsys.readouterr().out
