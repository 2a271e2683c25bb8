"""Ratios, summaries, tables and the picture of the comparison with the vendor's GEMM, without a GPU."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from tunesmith.logic import Document, NamedSolution, Origin
from tunesmith.logic import SizeRow as LogicRow
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem, Solution
from tunesmith.store import StoreEntry

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, BENCHMARKS)
import gemm_ratios as ratios  # noqa: E402
from gemm_own import best_own, without_vendor  # noqa: E402
from gemm_ratios import AGAIN, EXHAUSTIVE, OURS, OWN, VENDOR, Ratio, Row, Samples  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
BLOCKS = (1.0, 1.01, 0.99, 1.02, 0.98)


def samples(seconds, host=0.0):
    """Five blocks, with the same disturbances on every side."""
    return Samples(tuple(seconds * x for x in BLOCKS), tuple((host or seconds) * x for x in BLOCKS))


def row(ratio, family="llama", kernel="TritonGemm", own=None, m=16):
    """A problem on which the vendor takes `ratio` milliseconds and our side 1."""
    sides = {OURS: samples(1e-3, 2e-3), VENDOR: samples(ratio * 1e-3, 3e-3), AGAIN: samples(ratio * 1.01e-3)}
    if own:
        sides[OWN] = samples(ratio * 1e-3 / own)
    return Row(ListedGemm(m, 64, 32, family=family), 5e-4, "tile", kernel, "exact", "mine", sides)


def test_a_ratio_is_the_vendors_time_over_ours_pair_by_pair():
    """Half of the blocks ran on a slow clock, on both sides; the ratio does not see it."""
    ours = (1.0, 2.0, 1.0, 2.0, 1.1, 2.2)
    ratio = Ratio.of([1.25 * x for x in ours], ours)
    assert (ratio.ratio, ratio.low, ratio.high) == pytest.approx((1.25, 1.25, 1.25))


def test_a_side_that_was_not_measured_has_no_ratio():
    assert row(1.2).ratio(OWN) is None
    assert row(1.2).ratio(EXHAUSTIVE) is None
    assert row(1.2, own=0.9).ratio(OWN).ratio == pytest.approx(0.9)
    assert row(1.2).ratio(OURS, "host").ratio == pytest.approx(1.5)


def test_a_family_is_summed_up_by_mean_tail_and_shares():
    rows = [
        row(ratio, kernel=kernel, own=0.95)
        for ratio, kernel in ((0.8, "VendorBlas"), (1.0, "VendorBlas"), (1.25, "X"), (2.0, "X"))
    ]
    summary = ratios.summary("llama", rows)
    assert summary.geomean == pytest.approx(2.0 ** (1 / 4))
    assert summary.percentile_5 == pytest.approx(np.percentile([0.8, 1.0, 1.25, 2.0], 5))
    assert (summary.worst, summary.below, summary.vendor_chosen) == pytest.approx((0.8, 0.25, 0.5))
    assert summary.own == pytest.approx(0.95)
    assert summary.exhaustive is None
    assert (summary.noise, summary.noise_95) == pytest.approx((1 / 1.01, 0.01))


def test_families_keep_the_order_of_the_list_and_all_of_them_come_last():
    rows = [row(1.0, "wave"), row(1.1, "llama"), row(1.2, "wave"), row(1.3, "")]
    assert [(summary.family, summary.count) for summary in ratios.summaries(rows)] == [
        ("wave", 2),
        ("llama", 1),
        ("-", 1),
        ("all", 4),
    ]
    assert [summary.family for summary in ratios.summaries(rows[:1])] == ["wave"]


def test_every_problem_and_family_is_on_the_terminal():
    rows = [row(1.25, m=16, own=0.9), row(0.8, "wave", "VendorBlas", m=32)]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(ratios.shown(rows))
    text = console.export_text()
    assert "16x64x32 NN" in text
    assert "32x64x32 NN" in text
    (first,) = [line.split() for line in text.splitlines() if "16x64x32" in line]
    assert first[:8] == ["llama", "16x64x32", "NN", "1000.00", "2.0", "%", "1250.00", "0.50"]
    assert first[8:] == ["1.250", "1.25..1.25", "1.500", "0.900", "-", "0.990", "exact", "TritonGemm"]
    assert [line.split()[0] for line in text.splitlines()[-4:] if line.strip()] == ["family", "llama", "wave", "all"]


def test_the_csv_and_the_json_hold_the_same_and_what_was_not_measured_is_empty():
    rows = [row(1.25, own=0.9), row(0.8)]
    table = list(csv.DictReader(io.StringIO(ratios.csv_text(rows))))
    assert [float(line["ratio"]) for line in table] == pytest.approx([1.25, 0.8])
    assert [line["own_ratio"] == "" for line in table] == [False, True]
    document = json.loads(json.dumps(ratios.document(rows, {"device": "some GPU"})))
    assert document["device"] == "some GPU"
    assert [line["ours_kernel"] for line in document["rows"]] == pytest.approx([1e-3, 1e-3])
    assert [set(line) for line in document["rows"]] == [set(line) for line in table]
    assert document["summaries"][0]["geomean"] == pytest.approx(1.0)


def test_the_picture_has_every_problem_where_its_ratio_is():
    rows = [row(1.25, "llama"), row(0.5, "llama", "VendorBlas"), row(3.0, "a<b")]
    drawn = ElementTree.fromstring(ratios.svg(rows, "H200 & others"))
    titles = [node.text for node in drawn.iter(f"{SVG}text") if node.get("class") == "title"]
    assert titles == ["llama: 0.791", "a<b: 3.000"]
    dots = [(node.get("class"), float(node.get("cy"))) for node in drawn.iter(f"{SVG}circle")]
    assert [kind for kind, _ in dots] == ["vendor", "own", "own"], "ordered by ratio within a family"
    heights = [y for _, y in dots]
    assert heights == sorted(heights, reverse=True), "the faster, the higher"
    even = next(float(node.get("y1")) for node in drawn.iter(f"{SVG}line") if node.get("class") == "even")
    assert heights[0] > even > heights[1]
    slope = (heights[1] - heights[2]) / math.log(3.0 / 1.25)
    assert (heights[0] - heights[1]) / math.log(1.25 / 0.5) == pytest.approx(slope, rel=1e-3), "the axis is logarithmic"


# --- our own best kernels -------------------------------------------------------------------------------------------

KIND = gemm_type("h")
VENDORS, SMALL, LARGE = (
    Solution(KIND, kernel, Configuration({"KernelLanguage": language, "DepthU": depth}))
    for kernel, language, depth in (
        ("VendorBlas", "BLAS", 0),
        ("TritonGemm", "Triton", 32),
        ("TritonGemm", "Triton", 64),
    )
)


def entry(solution, sizes, seconds, raced=False):
    time = Estimate(seconds, seconds, seconds, 9)
    measured = Measurement(Outcome.OK, estimate=time, raced=raced)
    return StoreEntry("key", "full", "identity", solution, Problem(KIND, sizes), None, "compiler", measured)  # type: ignore[arg-type]


def test_our_best_is_the_fastest_that_was_sampled_to_its_end_and_is_not_the_vendors():
    sizes = (64, 64, 64)
    found = best_own(
        [entry(VENDORS, sizes, 1.0), entry(SMALL, sizes, 3.0), entry(LARGE, sizes, 2.0), entry(SMALL, sizes, 1.5, True)]
    )
    assert found == {Problem(KIND, sizes): (LARGE, Estimate(2.0, 2.0, 2.0, 9))}


def test_the_logic_without_the_vendor_names_our_best_at_every_size_that_ran():
    origin = Origin("CUDA", "H200", "GPU", "sm_90", "1", "x", "0", "today")
    time = Estimate(1.0, 1.0, 1.0, 9)
    rows = tuple(LogicRow((size, size, size), (), 0, time, 1.0) for size in (64, 128, 256, 512))
    document = Document(origin, KIND, (NamedSolution("vendor", VENDORS),), rows, 0)
    best = best_own(
        [entry(LARGE, (64, 64, 64), 2.0), entry(SMALL, (128, 128, 128), 2.0), entry(SMALL, (256, 256, 256), 2.0)]
    )
    without = without_vendor(document, best)
    picks = {row.sizes[0]: without.solutions[row.solution].solution for row in without.rows}
    assert picks == {64: LARGE, 128: SMALL, 256: SMALL}
    assert without.solutions[without.fallback].solution == SMALL
    assert without.rows[1].rate == pytest.approx(2 * 128**3 / 2.0 * 1e-9)
    assert without_vendor(document, {}) is None
