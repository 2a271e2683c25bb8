"""Scores of launch shapes with their doubt, the weights of cases, and the words of remarks."""

from __future__ import annotations

import math

import pytest

from random_benchmarks import decide, pair, rows
from tunesmith.logic.random import score
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.logic.random.decide import listed
from tunesmith.logic.random.decision import RandomObjective
from tunesmith.logic.random.matrix import STATED, RandomCase, Speed, SpeedMatrix
from tunesmith.logic.random.score import ROUNDING, ScoreScale, scale
from tunesmith.logic.random.shapes import NO_POWER_OF_TWO, is_free, rejections
from tunesmith.records import LaunchShape, Rejection

FLOAT, NORMAL = RandomCase("uniform", "float"), RandomCase("normal", "float")
DEFAULT, SHAPE, OTHER = LaunchShape(256, 512), LaunchShape(64, 512), LaunchShape(128, 512)


def matrix(speeds):
    """Speeds and half-widths by case, of the default and the two other shapes."""
    by_case = {
        case: {
            shape: Speed(speed, half_width, 1)
            for shape, (speed, half_width) in zip((DEFAULT, SHAPE, OTHER), row, strict=True)
        }
        for case, row in speeds.items()
    }
    return SpeedMatrix("xorwow", "gfx90a", DEFAULT, by_case)


# --- doubt ------------------------------------------------------------------------------------------------------------


def measured(speed, factor, shape=(64, 512), **more):
    """A row whose interval is a factor wide to both sides."""
    interval = (speed / factor, speed * factor)
    return rows("xorwow", {"uniform/float": {shape: speed}}, interval=interval, **more)


def reach(*found):
    """The logarithm of how far the interval of the ratio to the default goes, up and down."""
    ratio = decide(sum(found, ())).matrix.ratio(FLOAT, SHAPE)
    up = math.log(ratio.high / ratio.ratio)
    assert math.log(ratio.ratio / ratio.low) == pytest.approx(up)
    return up


def test_the_intervals_of_two_shapes_add_up_as_independent_ones():
    found = (measured(100.0, 1.2, (256, 512)), measured(150.0, 1.1))
    assert reach(*found) == pytest.approx(math.hypot(math.log(1.2), math.log(1.1)))


def test_the_intervals_of_repeats_are_those_of_their_mean():
    """The repeats have the same speed, so that their scatter says nothing."""
    found = (measured(100.0, 1.2, (256, 512)), measured(150.0, 1.1), measured(150.0, 1.3))
    mean = math.hypot(math.log(1.1), math.log(1.3)) / 2
    assert reach(*found) == pytest.approx(math.hypot(math.log(1.2), mean))


def test_repeats_that_lie_farther_apart_than_their_intervals_are_believed():
    """The deviation is ln(1.1) sqrt(2) with one degree of freedom, for which Student's quantile is 12.706."""
    repeats = (measured(150.0 / 1.1, 1.001), measured(150.0 * 1.1, 1.001))
    scatter = 12.7062 * math.log(1.1) * math.sqrt(2)
    found = (measured(100.0, 1.001, (256, 512)), *repeats)
    assert reach(*found) == pytest.approx(math.hypot(scatter, scatter / math.sqrt(2)), rel=1e-4)


def test_an_interval_of_only_some_repeats_is_no_interval():
    """What is known then is the scatter of the repeats, or the stated noise where no cell has repeats."""
    without = rows("xorwow", {"uniform/float": {(64, 512): 150.0}})
    ratio = decide(measured(100.0, 1.2, (256, 512)) + without).matrix.ratio(FLOAT, SHAPE)
    assert (ratio.low, ratio.high) == pytest.approx((1.5 * 0.98, 1.5 / 0.98))
    found = (measured(100.0, 1.2, (256, 512)), measured(150.0, 1.1), without)
    assert reach(*found) == pytest.approx(math.log(1.2)), "the repeats are equal, and their scatter is none"


def test_doubts_of_cases_add_up_by_weight_and_unknown_ones_in_full():
    speeds = {FLOAT: [(100, 0.3), (110, 0.4), (120, None)], NORMAL: [(100, 0.6), (110, 0.8), (120, 0.1)]}
    scores = ScoreScale(matrix(speeds), {FLOAT: 0.25, NORMAL: 0.75})
    assert scores.doubt(DEFAULT, SHAPE) == pytest.approx(math.hypot(0.25 * 0.5, 0.75 * 1.0))
    assert scores.doubt(DEFAULT, OTHER) == pytest.approx(0.75 * math.hypot(0.6, 0.1) + 0.25 * STATED)


def test_the_doubt_of_the_worst_is_that_of_the_two_slowest_cases():
    """SHAPE is slowest for float, OTHER for normal."""
    speeds = {FLOAT: [(100, 0.1), (70, 0.3), (90, 0.5)], NORMAL: [(100, 0.1), (80, 0.7), (60, 0.4)]}
    scores = ScoreScale(matrix(speeds), {FLOAT: 0.5, NORMAL: 0.5}, worst=True)
    assert scores.score(SHAPE) == pytest.approx(math.log(0.7))
    assert scores.score(OTHER) == pytest.approx(math.log(0.6))
    assert scores.doubt(SHAPE, OTHER) == pytest.approx(math.hypot(0.3, 0.4))
    unknown = ScoreScale(matrix(speeds | {NORMAL: [(100, 0.1), (80, 0.7), (60, None)]}), scores.weights, worst=True)
    assert unknown.doubt(SHAPE, OTHER) == STATED


@pytest.mark.parametrize(("beyond", "ties"), [(-1e-9, [DEFAULT, SHAPE]), (1e-9, [SHAPE])])
def test_scores_are_equal_up_to_their_doubt(beyond, ties):
    half = 0.03
    faster = math.exp(math.hypot(half, half) + beyond)
    scores = ScoreScale(matrix({FLOAT: [(1.0, half), (faster, half), (0.1, half)]}), {FLOAT: 1.0})
    assert sorted(scores.equals(scores.rank((DEFAULT, SHAPE, OTHER)))) == sorted(ties)
    assert scores.settle((DEFAULT, SHAPE, OTHER), (DEFAULT,)) == (DEFAULT if DEFAULT in ties else SHAPE)
    assert scores.settle((SHAPE, OTHER), (DEFAULT,)) == SHAPE, "an incumbent must be among the shapes"


def test_scores_that_are_known_exactly_are_equal_up_to_rounding():
    for apart, count in ((ROUNDING / 2, 2), (ROUNDING * 10, 1)):
        scores = ScoreScale(matrix({FLOAT: [(1.0, 0.0), (math.exp(apart), 0.0), (0.5, 0.0)]}), {FLOAT: 1.0})
        assert len(scores.equals(scores.rank((DEFAULT, SHAPE, OTHER)))) == count


def test_a_shape_cannot_be_told_from_itself_even_where_nothing_is_rounded(monkeypatch):
    monkeypatch.setattr(score, "ROUNDING", 0.0)
    scores = ScoreScale(matrix({FLOAT: [(1.0, 0.0), (2.0, 0.0), (0.5, 0.0)]}), {FLOAT: 1.0})
    assert scores.equals(scores.rank((DEFAULT, SHAPE, OTHER))) == (SHAPE,)


# --- shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generator", "shape", "reasons"),
    [
        ("mtgp32", (256, 512), []),
        ("mtgp32", (512, 128), ["block"]),
        ("mtgp32", (256, 1024), ["threads"]),
        ("lfsr113", (256, 512), []),
        ("lfsr113", (256, 600), [NO_POWER_OF_TWO]),
        ("lfsr113", (1, 1), []),
        ("lfsr113", (2, 1), []),
        ("lfsr113", (3, 1), [NO_POWER_OF_TWO]),
        ("lfsr113", (1, 5), [NO_POWER_OF_TWO]),
        ("mt19937", (64, 100), []),
        ("mt19937", (60, 100), ["threads"]),
        ("xorwow", (60, 100), []),
        ("nobody", (60, 100), []),
    ],
)
def test_a_generators_own_rules_refuse_shapes(generator, shape, reasons):
    assert [rejection.reason for rejection in rejections(generator, LaunchShape(*shape))] == reasons


@pytest.mark.parametrize(
    ("generator", "free"), [("philox4_32_10", True), ("sobol32", True), ("xorwow", False), ("nobody", False)]
)
def test_only_a_known_generator_without_engines_gives_the_same_output_for_every_shape(generator, free):
    assert is_free(generator) is free


def test_a_distributions_own_shape_is_judged_over_all_its_sizes():
    """On the small buffer it is slower than the default, which counts only where no regression is allowed."""
    of_large = {
        "uniform/float": {(256, 1024): 100.0, (64, 64): 200.0},
        "normal/float": {(256, 1024): 900.0, (64, 64): 90.0},
    }
    of_small = {
        "uniform/float": {(256, 1024): 100.0, (64, 64): 80.0},
        "normal/float": {(256, 1024): 900.0, (64, 64): 90.0},
    }
    found = rows("philox4_32_10", of_large, bytes=2**30) + rows("philox4_32_10", of_small, bytes=2**24)
    defaults = {"philox4_32_10": LaunchShape(256, 1024)}
    decision = decide(found, defaults=defaults)
    (override,) = decision.overrides
    assert (override.distribution, pair(override.shape)) == ("uniform", (64, 64))
    assert override.gain == pytest.approx(math.sqrt(2.0 * 0.8))
    assert decide(found, defaults=defaults, no_regressions=True).overrides == ()


def test_the_default_is_as_fast_as_itself_whatever_the_noise():
    for half_width in (0.3, None):
        ratio = matrix({FLOAT: [(2.0, half_width)] * 3}).ratio(FLOAT, DEFAULT)
        assert (ratio.low, ratio.ratio, ratio.high, ratio.slower) == (1.0, 1.0, 1.0, False)


def test_of_equal_shapes_the_one_with_fewer_threads_comes_first_then_the_smaller_block():
    shapes = [LaunchShape(*shape) for shape in ((512, 64), (64, 512), (128, 128))]
    equal = SpeedMatrix(
        "xorwow", "gfx90a", DEFAULT, {FLOAT: {shape: Speed(1.0, None, 1) for shape in (*shapes, DEFAULT)}}
    )
    ranked = ScoreScale(equal, {FLOAT: 1.0}).rank((*shapes, DEFAULT))
    assert [pair(scored.shape) for scored in ranked] == [(128, 128), (64, 512), (512, 64), (256, 512)]
    assert {scored.score for scored in ranked} == {1.0}


# --- weights ----------------------------------------------------------------------------------------------------------


def test_the_sizes_of_one_distribution_share_its_weight():
    found = rows("xorwow", {"uniform/float": {(256, 512): 1.0, (64, 512): 4.0}}, bytes=1)
    found += rows("xorwow", {"uniform/float": {(256, 512): 1.0, (64, 512): 9.0}}, bytes=2)
    found += rows("xorwow", {"normal/float": {(256, 512): 1.0, (64, 512): 25.0}}, bytes=2)
    assert decide(found).score == pytest.approx(math.sqrt(math.sqrt(4 * 9) * 25))
    weights = {("", "uniform", "float"): 2.0, ("", "normal", "float"): 1.0}
    decision = decide(found, RandomObjective.WEIGHTED, weights=weights)
    assert decision.score == pytest.approx((math.sqrt(4 * 9) ** 2 * 25) ** (1 / 3))


def test_weights_add_up_to_one_and_what_has_none_does_not_count():
    known = matrix({FLOAT: [(1, None)] * 3, NORMAL: [(1, None)] * 3})
    weighted = scale(RandomObjective.WEIGHTED, known, {("", "uniform", "float"): 4.0})
    assert weighted.weights == {FLOAT: 1.0, NORMAL: 0.0}
    assert not weighted.worst
    assert scale(RandomObjective.WORST, known, {}).worst
    assert scale(RandomObjective.GEOMEAN, known, {}).weights == {FLOAT: 0.5, NORMAL: 0.5}
    assert scale(RandomObjective.WEIGHTED, known, {}) is None


def test_where_nothing_has_a_weight_nothing_is_chosen():
    found = rows("xorwow", {"uniform/float": {(256, 512): 1.0, (64, 512): 4.0}})
    selection = choose_shapes(found, RandomObjective.WEIGHTED, weights={("", "uniform", "float"): 0.0})
    assert selection.decisions == ()
    assert [complaint.what for complaint in selection.complaints] == ["nothing that was measured has a weight"]


# --- remarks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "end"), [(1, "0"), (2, "0, 1"), (6, "4, 5"), (7, "4, 5 and 1 more"), (9, " and 3 more")]
)
def test_six_values_are_listed_and_of_more_their_number(count, end):
    text = listed([*range(count), 0])
    assert text.startswith("0")
    assert text.endswith(end)
    assert text.count(",") == min(count, 6) - 1, "each value is named once"


EDGES = {
    "two grids": ({(256, 512): 1.0, (256, 1024): 2.0}, ["the largest grid"]),
    "two blocks": ({(256, 512): 1.0, (64, 512): 2.0}, ["the smallest block"]),
    "a corner": ({(256, 512): 1.0, (64, 1024): 2.0}, ["the smallest block", "the largest grid"]),
    "the smallest of three": ({(256, 512): 1.0, (256, 256): 2.0, (256, 1024): 1.0}, ["the smallest grid"]),
    "the middle": ({(256, 512): 1.0, (256, 1024): 2.0, (256, 2048): 1.0}, []),
    "the default": ({(256, 512): 2.0, (256, 1024): 1.0}, []),
}


@pytest.mark.parametrize("name", EDGES)
def test_a_winner_at_the_end_of_what_was_measured_is_told_for_blocks_and_for_grids(name):
    speeds, ends = EDGES[name]
    decision = decide(rows("xorwow", {"uniform/float": speeds}))
    details = [remark.detail for remark in decision.remarks if remark.reason == "edge"]
    assert details == [f"{decision.chosen} has {end} that was measured; try further ones" for end in ends]
    assert not any(remark.look for remark in decision.remarks)


def test_a_person_is_asked_which_architecture_it_is_if_the_file_does_not_say():
    speeds = {"uniform/float": {(256, 512): 2.0, (256, 1024): 1.0}}
    for architecture, asked in (("unknown", [True]), ("gfx90a", [])):
        remarks = decide(rows("xorwow", speeds, architecture)).remarks
        assert [remark.look for remark in remarks if remark.reason == "architecture"] == asked


def test_a_cell_that_failed_is_known_unless_another_run_of_it_succeeded():
    found = rows("xorwow", {"uniform/float": {(256, 512): 2.0, (64, 512): 3.0}})
    found += rows("xorwow", {"uniform/float": {(64, 512): math.nan, (128, 512): 0.0}}, aside=Rejection("failed", "no"))
    found += rows("xorwow", {"uniform/float": {(512, 512): 1.0}}, aside=Rejection("aggregate", "a mean"))
    assert decide(found).matrix.failed == {(FLOAT, OTHER)}
