"""`compat` makes rocRAND's choices: on rocRAND's golden cases, and by its rules on made-up rows."""

from __future__ import annotations

import json
import math
import random
import re

import pytest

from random_benchmarks import GOLDEN, decide, pair, rows
from tunesmith.formats import read_random
from tunesmith.formats.random.outputs import write_selection
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.logic.random.decision import RandomObjective
from tunesmith.logic.random.rocrand_ranking import descending
from tunesmith.logic.random.shapes import DEFAULT_SHAPES
from tunesmith.records import LaunchShape, Rejection

COMPAT = RandomObjective.COMPAT
DEFAULT = (256, 1024)
"""The default shape of philox4_32_10."""


def messages(decision):
    """The remarks that are rocRAND's warnings: those whose constants contain underscores."""
    return [remark.reason for remark in decision.remarks if "_" in remark.reason]


def golden_cases():
    return sorted(path.parent for path in GOLDEN.glob("*/expected.json"))


needs_golden = pytest.mark.skipif(not golden_cases(), reason="the golden cases are not there (TUNESMITH_DATA)")


@needs_golden
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_compat_chooses_ranks_and_warns_as_rocrands_script(case):
    reading = read_random(sorted(case.glob("*.json")))
    selection = choose_shapes(reading.rows, COMPAT)
    found = {(decision.generator, decision.architecture): decision for decision in selection.decisions}
    expected = json.loads((case / "expected.json").read_text())
    assert set(found) == {(generator, arch) for generator, archs in expected.items() for arch in archs}
    for (generator, arch), decision in found.items():
        reference = expected[generator][arch]
        assert pair(decision.chosen) == (reference["best"]["block_size"], reference["best"]["grid_size"])
        # The expected means come from another summation.
        assert decision.score == pytest.approx(reference["mean_speedup"], rel=1e-14)
        assert [list(pair(shape)) for shape in decision.ties] == reference["ties"]
        assert {str(ratio.case): ratio.ratio for ratio in decision.ratios} == reference["per_distribution"]
        assert [str(ratio.case) for ratio in decision.regressions] == reference["regressions"]
        assert [list(pair(scored.shape)) for scored in decision.ranking] == [row[:2] for row in reference["ranking"]]
        assert [scored.score for scored in decision.ranking] == pytest.approx(
            [row[2] for row in reference["ranking"]], rel=1e-14
        )
        assert messages(decision) == reference.get("messages", [])
        alternative = reference.get("alternative_without_regressions")
        assert (decision.safe and list(pair(decision.safe.shape))) == alternative


@needs_golden
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_headers_of_compat_say_what_rocrands_say(case, tmp_path):
    write_selection(choose_shapes(read_random(sorted(case.glob("*.json"))).rows, COMPAT).decisions, tmp_path)
    for theirs in (case / "out").glob("*.hpp"):
        case_lines = [
            re.findall(r"case \w+::\w+: return \d+;", path.read_text()) for path in (theirs, tmp_path / theirs.name)
        ]
        assert sorted(case_lines[0]) == sorted(case_lines[1])
        assert len(case_lines[0]) >= 2


@needs_golden
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("C3_default_missing", "the default 256x1024 was not measured for uniform/unsigned_int"),
        ("C4_foreign_name", "BM_other/manual_time: is no name of a generator's benchmark"),
    ],
)
def test_where_rocrands_script_crashes_we_say_in_which_file_and_go_on(name, words):
    reading = read_random(sorted((GOLDEN / name).glob("tuning*.json")))
    selection = choose_shapes(reading.rows, COMPAT)
    complaints = [str(complaint) for complaint in (*reading.complaints, *selection.complaints)]
    assert any(words in complaint and "tuning_gfx90a.json" in complaint for complaint in complaints)
    assert len(selection.decisions) == (1 if name == "C4_foreign_name" else 0)


ALONE = ["best_has_regressions", "no_other_config_with_average_speedup", "no_config_without_regressions"]

# (speeds, winner, mean, messages, alternative); the default is 256x1024.
COMPAT_CASES = {
    "a mean of ratios, not of speeds": (
        {"uniform/float": {DEFAULT: 1000.0, (64, 64): 900.0}, "poisson/unsigned_int": {DEFAULT: 10.0, (64, 64): 13.0}},
        (64, 64), 1.1, ALONE, None,
    ),
    "0.98 is no regression yet": (
        {"uniform/float": {DEFAULT: 100.0, (64, 64): 98.0}, "normal/float": {DEFAULT: 100.0, (64, 64): 104.0}},
        (64, 64), 1.01, [], None,
    ),
    "the next best must be faster everywhere, not only as fast": (
        {"uniform/float": {DEFAULT: 100.0, (64, 64): 200.0, (64, 128): 100.0, (64, 256): 101.0},
         "normal/float": {DEFAULT: 100.0, (64, 64): 50.0, (64, 128): 120.0, (64, 256): 101.0}},
        (64, 64), 1.25, ["best_has_regressions", "next_best_without_regressions"], (64, 256),
    ),
    "one pair is enough to win": (
        {"uniform/float": {DEFAULT: 100.0, (64, 64): 101.0}, "normal/float": {DEFAULT: 100.0, (512, 64): 103.0}},
        (512, 64), 1.03, [], None,
    ),
    "of equals the smaller block": (
        {"uniform/float": {(512, 512): 150.0, DEFAULT: 100.0, (128, 2048): 150.0}},
        (128, 2048), 1.5, [], None,
    ),
    "what is as good on average is no alternative": (
        {"uniform/float": {DEFAULT: 100.0, (64, 64): 150.0, (64, 128): 110.0},
         "normal/float": {DEFAULT: 100.0, (64, 64): 75.0, (64, 128): 115.0}},
        (64, 64), 1.125, ALONE, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPAT_CASES)
def test_compat_follows_the_rules_of_the_script(name):
    speeds, winner, mean, expected_messages, alternative = COMPAT_CASES[name]
    decision = decide(rows("philox4_32_10", speeds), COMPAT)
    assert pair(decision.chosen) == winner
    assert decision.score == pytest.approx(mean, rel=1e-15)
    assert messages(decision) == expected_messages
    to_look_at = [remark.reason for remark in decision.remarks if remark.look]
    assert to_look_at == expected_messages[:1], "the rest is for information"
    assert (decision.safe and pair(decision.safe.shape)) == alternative


def test_compat_names_the_shapes_with_the_winners_mean_beside_it():
    speeds = {DEFAULT: 100.0, (128, 64): 150.0, (64, 64): 150.0, (64, 128): 149.0, (512, 64): 150.0}
    decision = decide(rows("philox4_32_10", {"uniform/float": speeds}), COMPAT)
    assert pair(decision.chosen) == (64, 64)
    assert [pair(shape) for shape in decision.ties] == [(128, 64), (512, 64)]
    alone = decide(rows("philox4_32_10", {"uniform/float": {DEFAULT: 100.0, (64, 64): 150.0}}), COMPAT)
    assert alone.ties == ()


def test_compat_divides_by_the_first_row_of_the_default_and_counts_all_rows():
    speeds = {"uniform/float": {DEFAULT: 100.0, (64, 64): 120.0}}
    again = {"uniform/float": {DEFAULT: 200.0}}
    decision = decide(rows("philox4_32_10", speeds) + rows("philox4_32_10", again), COMPAT)
    assert [(pair(scored.shape), scored.score) for scored in decision.ranking] == [(DEFAULT, 1.5), ((64, 64), 1.2)]
    turned = decide(rows("philox4_32_10", again) + rows("philox4_32_10", speeds), COMPAT)
    assert [(pair(scored.shape), scored.score) for scored in turned.ranking] == [(DEFAULT, 0.75), ((64, 64), 0.6)]


def test_compat_is_misled_by_aggregates_as_the_script_is_and_says_so_while_geomean_is_not():
    speeds = {"uniform/float": {DEFAULT: 100.0, (512, 2048): 120.0, (64, 2048): 130.0}}
    spread = {"uniform/float": {DEFAULT: 90.0, (512, 2048): 108.0, (64, 2048): 2.6}}
    found = rows("philox4_32_10", speeds) + rows("philox4_32_10", spread, aside=Rejection("aggregate", "stddev"))
    compat = decide(found, COMPAT)
    assert pair(compat.chosen) == (512, 2048)
    (remark,) = [remark for remark in compat.remarks if remark.reason == "aggregate"]
    assert remark.look
    assert remark.detail.startswith("3 rows counted")
    (ours,) = [remark for remark in compat.remarks if remark.reason == "geomean"]
    assert "64x2048" in ours.detail
    assert not ours.look
    assert pair(decide(found).chosen) == (64, 2048)


def test_compat_leaves_rows_without_a_speed_out_of_the_mean_and_out_of_the_alternatives():
    found = rows(
        "philox4_32_10",
        {
            "normal/float": {DEFAULT: 80.0, (512, 2048): 90.0, (64, 64): 40.0, (128, 64): 84.0},
            "uniform/float": {DEFAULT: 100.0, (512, 2048): math.nan, (64, 64): 200.0, (128, 64): math.nan},
        },
    )
    decision = decide(found, COMPAT)
    assert [(pair(scored.shape), scored.score) for scored in decision.ranking] == [
        ((64, 64), 1.25),
        ((512, 2048), 1.125),
        ((128, 64), 1.05),
        (DEFAULT, 1.0),
    ]
    assert messages(decision) == ["best_has_regressions", "no_config_without_regressions"], "not known is not faster"
    measured = decide(found[:5] + found[6:], COMPAT)
    assert messages(measured) == ["best_has_regressions", "next_best_without_regressions"], "not there is no matter"


def test_compat_tells_the_smallest_ratio_of_a_distribution_with_several_sizes():
    found = rows("philox4_32_10", {"uniform/float": {DEFAULT: 100.0, (64, 64): 90.0}}, bytes=1)
    found += rows("philox4_32_10", {"uniform/float": {DEFAULT: 100.0, (64, 64): 80.0}}, bytes=2)
    found += rows("philox4_32_10", {"uniform/float": {DEFAULT: 100.0, (64, 64): 95.0}}, bytes=3)
    found += rows("philox4_32_10", {"normal/float": {DEFAULT: 100.0, (64, 64): 200.0}}, bytes=1)
    decision = decide(found, COMPAT)
    assert pair(decision.chosen) == (64, 64)
    assert [(str(ratio.case), ratio.ratio) for ratio in decision.regressions] == [("uniform/float", 0.8)]
    assert "uniform/float 0.800" in decision.remarks[0].detail


def test_compat_says_how_many_rows_with_a_speed_it_counts_that_are_no_measurements():
    found = rows("philox4_32_10", {"uniform/float": {DEFAULT: 100.0, (64, 64): 120.0}})
    found += rows(
        "philox4_32_10",
        {"uniform/float": {(64, 128): 0.5, (64, 256): 0.0, (64, 512): math.nan}},
        aside=Rejection("aggregate", "stddev"),
    )
    details = [remark.detail for remark in decide(found, COMPAT).remarks if remark.reason == "aggregate"]
    assert details == ["1 rows counted as measurements, as rocRAND's script does"]


def test_compat_says_what_the_script_of_2026_leaves_out_and_asks_nobody_about_it():
    speeds = {"uniform/float": {(256, 512): 100.0, (256, 600): 150.0, (256, 1024): 119.0}}
    compat = decide(rows("lfsr113", speeds, by_primbench=True), COMPAT)
    assert pair(compat.chosen) == (256, 1024)
    (left_out,) = [remark for remark in compat.remarks if remark.reason == "threads are no power of two"]
    assert left_out.detail.startswith("256x600 left out")
    assert not left_out.look
    assert not [remark for remark in compat.remarks if remark.reason == "geomean"], "it would choose the same"


def test_compat_keeps_lfsr113s_broken_totals_and_warns_of_them():
    speeds = {"uniform/float": {(256, 512): 100.0, (256, 600): 150.0, (256, 1024): 119.0}}
    compat = decide(rows("lfsr113", speeds), COMPAT)
    assert pair(compat.chosen) == (256, 600)
    assert any(remark.look and "streams repeat" in remark.detail for remark in compat.remarks)
    ours = decide(rows("lfsr113", speeds))
    assert pair(ours.chosen) == (256, 1024)
    assert [(pair(shape), why.reason) for shape, why in ours.ineligible] == [
        ((256, 600), "threads are no power of two")
    ]


@pytest.mark.parametrize(
    ("count", "order"),
    [
        (16, [*range(16)]),
        (17, [0, 14, 13, 12, 11, 10, 9, 15, 8, 6, 5, 4, 3, 2, 1, 7, 16]),
        (19, [0, 16, 15, 14, 13, 12, 11, 10, 17, 9, 7, 6, 5, 4, 3, 2, 1, 8, 18]),
    ],
)
def test_equals_are_left_in_the_order_of_numpys_quicksort(count, order):
    """`numpy.zeros(count).argsort()` of NumPy 1.24.2, which the script is pinned to, both ends turned."""
    assert descending([1.0] * count) == [count - 1 - index for index in reversed(order)]


@pytest.mark.parametrize(
    ("digits", "order"),
    [
        (
            "00111310302031111110",
            "0 11 7 9 1 19 4 6 2 18 13 14 15 16 17 3 10 5 8 12",
        ),
        (
            "1112010000201210010220031012321",
            "15 25 4 22 6 7 8 9 21 11 18 16 26 24 17 0 14 12 5 2 1 30 13 19 20 10 3 27 29 23 28",
        ),
        (
            "5555555555555555555555555555555555555555",
            "0 22 23 24 25 26 27 28 21 29 31 32 33 34 35 36 37 30 20 19 "
            "18 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 38 39",
        ),
        (
            "21300020100330103001030101231021012000133233",
            "17 32 29 36 24 22 37 20 18 15 13 35 7 10 9 4 5 3 25 31 1 23 "
            "8 33 38 14 19 28 30 0 26 6 34 41 40 39 21 42 16 12 11 2 27 43",
        ),
    ],
)  # fmt: skip
def test_equals_among_others_are_left_in_that_order_too(digits, order):
    """`argsort()` of the digits by NumPy 2.4.6 with all vector instructions off, which leaves its older quicksort; both
    ends turned, as above."""
    last = len(digits) - 1
    assert descending([float(digit) for digit in reversed(digits)]) == [
        last - int(at) for at in reversed(order.split())
    ]


def test_descending_sorts_and_keeps_nan_last_for_whatever_comes():
    source = random.Random(3)
    for _ in range(200):
        values = [source.choice([math.nan, 0.0, 1.0, 2.0, source.random()]) for _ in range(source.randrange(70))]
        order = descending(values)
        assert sorted(order) == list(range(len(values)))
        sortable = [values[index] for index in order if values[index] == values[index]]
        assert sortable == sorted(sortable, reverse=True)
        assert all(values[index] != values[index] for index in order[len(sortable) :])


@needs_golden
def test_the_defaults_are_rocrands():
    text = re.sub(r"//.*", "", (GOLDEN / "config_defaults.json").read_text())
    theirs = {name: LaunchShape(shape["block_size"], shape["grid_size"]) for name, shape in json.loads(text).items()}
    assert theirs == {name: DEFAULT_SHAPES[name] for name in theirs}
