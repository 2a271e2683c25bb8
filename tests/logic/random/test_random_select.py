"""The launch shapes that our objectives choose, their remarks, and `tunesmith random select`."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest

from random_benchmarks import decide, pair, rows
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.logic.random.decision import RandomObjective
from tunesmith.logic.random.grids import grid_sizes
from tunesmith.records import LaunchShape, RandomRow

COMPAT, GEOMEAN, WORST, WEIGHTED = (
    RandomObjective.COMPAT,
    RandomObjective.GEOMEAN,
    RandomObjective.WORST,
    RandomObjective.WEIGHTED,
)
DEFAULT = (256, 1024)
"""The default shape of philox4_32_10."""

SPEEDS = {
    "uniform/float": {DEFAULT: 100.0, (64, 64): 200.0, (128, 64): 112.0, (512, 64): 130.0},
    "normal/float": {DEFAULT: 100.0, (64, 64): 68.0, (128, 64): 112.0, (512, 64): 96.0},
    "poisson/unsigned_int": {DEFAULT: 10.0, (64, 64): 11.0, (128, 64): 10.6, (512, 64): 14.0},
}
"""Ratios 2, 0.68, 1.1 (mean 1.260, geomean 1.143); 1.12, 1.12, 1.06; 1.3, 0.96, 1.4 (mean 1.22, geomean 1.204)."""


@pytest.mark.parametrize(
    ("objective", "chosen", "score"),
    [
        (COMPAT, (64, 64), 3.78 / 3),
        (GEOMEAN, (512, 64), (1.3 * 0.96 * 1.4) ** (1 / 3)),
        (WORST, (128, 64), 1.06),
    ],
)
def test_each_objective_has_its_own_winner(objective, chosen, score):
    decision = decide(rows("xorwow", SPEEDS), objective, defaults={"xorwow": LaunchShape(*DEFAULT)})
    assert pair(decision.chosen) == chosen
    assert decision.score == pytest.approx(score)


@pytest.mark.parametrize(("objective", "slowest"), [(COMPAT, 0.68), (GEOMEAN, 0.96), (WORST, 1.06)])
def test_the_worst_of_a_choice_is_its_smallest_ratio_to_the_default(objective, slowest):
    decision = decide(rows("xorwow", SPEEDS), objective, defaults={"xorwow": LaunchShape(*DEFAULT)})
    assert decision.worst is not None
    assert decision.worst.ratio == pytest.approx(slowest)
    assert replace(decision, ratios=()).worst is None


def test_weights_say_what_matters_and_a_generators_own_come_first():
    weights = {("", "uniform", "float"): 1.0, ("", "normal", "float"): 3.0}
    defaults = {"xorwow": LaunchShape(*DEFAULT)}
    decision = decide(rows("xorwow", SPEEDS), WEIGHTED, defaults=defaults, weights=weights)
    assert pair(decision.chosen) == (128, 64)
    assert decision.score == pytest.approx(1.12)
    own = weights | {("xorwow", "normal", "float"): 0.0}
    decision = decide(rows("xorwow", SPEEDS), WEIGHTED, defaults=defaults, weights=own)
    assert pair(decision.chosen) == (64, 64)
    assert [str(ratio.case) for ratio in decision.regressions] == ["normal/float"], "no weight, but told all the same"


def test_a_weight_for_what_was_not_measured_is_said():
    weights = {("", "uniform", "half"): 1.0, ("", "uniform", "float"): 1.0}
    selection = choose_shapes(rows("philox4_32_10", SPEEDS), WEIGHTED, weights=weights)
    assert [str(complaint) for complaint in selection.complaints] == [
        "weights: uniform/half was not measured; leave it out, or measure it"
    ]
    assert len(selection.decisions) == 1


@pytest.mark.parametrize("objective", [COMPAT, GEOMEAN, WORST])
def test_every_objective_tells_regressions_and_can_do_without(objective):
    found, defaults = rows("xorwow", SPEEDS), {"xorwow": LaunchShape(*DEFAULT)}
    decision = decide(found, objective, defaults=defaults)
    slower = {COMPAT: ["normal/float"], GEOMEAN: ["normal/float"], WORST: []}[objective]
    assert [str(ratio.case) for ratio in decision.regressions] == slower
    assert any(remark.look for remark in decision.remarks) == bool(slower)
    if slower:
        assert decision.safe
        assert pair(decision.safe.shape) == (128, 64)
    constrained = decide(found, objective, defaults=defaults, no_regressions=True)
    assert pair(constrained.chosen) == (128, 64)
    assert not constrained.regressions


def test_geomean_agrees_with_brute_force_where_nothing_ties():
    source = random.Random(11)
    shapes = list(itertools.product((64, 256, 512), (512, 1024, 2048)))
    pairs = ["uniform/float", "normal/double", "poisson/unsigned_int"]
    for _ in range(100):
        speeds = {case: {shape: source.uniform(50, 200) for shape in shapes} for case in pairs}
        found: tuple[RandomRow, ...] = ()
        for case, row in speeds.items():
            for shape, speed in row.items():
                found += rows("xorwow", {case: {shape: speed}}, interval=(speed * (1 - 1e-9), speed * (1 + 1e-9)))
        best = max(shapes, key=lambda shape: math.prod(speeds[case][shape] / speeds[case][256, 512] for case in pairs))
        assert pair(decide(found).chosen) == best


def test_the_default_stays_where_the_best_cannot_be_told_from_it():
    speeds = {"uniform/float": {(256, 512): 100.0, (64, 512): 101.9, (128, 512): 99.0}}
    decision = decide(rows("xorwow", speeds))
    assert pair(decision.chosen) == (256, 512)
    assert [pair(shape) for shape in decision.ties] == [(64, 512)], "within the stated 2 %; 99.0 is not"
    for other, noise, chosen in ((101.9, 0.001, (64, 512)), (140.0, 0.3, (256, 512))):
        found: tuple[RandomRow, ...] = ()
        for shape, speed in (((256, 512), 100.0), ((64, 512), other)):
            interval = (speed * (1 - noise), speed / (1 - noise))
            found += rows("xorwow", {"uniform/float": {shape: speed}}, interval=interval)
        assert pair(decide(found).chosen) == chosen, "what is known of the noise decides"


def test_repeats_tell_the_noise_over_all_cells_together():
    """Two repeats a cell, each pair ±1 % about its middle: the pooled deviation has as many degrees as cells."""
    middle = {
        "uniform/float": {(256, 512): 100.0, (64, 512): 97.0},
        "normal/float": {(256, 512): 50.0, (64, 512): 60.0},
    }
    found: tuple[RandomRow, ...] = ()
    for factor in (0.99, 1 / 0.99):
        found += rows("xorwow", {case: {s: v * factor for s, v in row.items()} for case, row in middle.items()})
    decision = decide(found)
    # Standard deviation of the logarithm -ln(0.99) sqrt(2), Student's 2.776 for 4 degrees, two repeats, two shapes.
    reach = 2.7764 * -math.log(0.99) * math.sqrt(2)
    by_case = {str(ratio.case): ratio for ratio in decision.ratios}
    assert math.log(by_case["normal/float"].high / by_case["normal/float"].ratio) == pytest.approx(reach, rel=1e-4)
    assert pair(decision.chosen) == (64, 512)
    assert not decision.regressions, "97 of 100 is within 4 %"


def test_a_shape_that_is_missing_somewhere_may_not_be_chosen_and_that_is_said():
    speeds = {
        "uniform/float": {(256, 512): 100.0, (64, 512): 300.0, (512, 512): 120.0},
        "normal/float": {(256, 512): 10.0, (512, 512): 12.0},
    }
    decision = decide(rows("xorwow", speeds))
    assert pair(decision.chosen) == (512, 512)
    assert [pair(scored.shape) for scored in decision.ranking] == [(512, 512), (256, 512)]
    (remark,) = [remark for remark in decision.remarks if remark.reason == "not measured everywhere"]
    assert remark.look
    assert remark.detail == "64x512 may not be chosen: not measured for normal/float"


def test_counter_based_generators_get_shapes_by_pair_and_others_do_not():
    defaults = {name: LaunchShape(*DEFAULT) for name in ("philox4_32_10", "xorwow", "sobol32")}
    philox, xorwow, sobol = (decide(rows(name, SPEEDS), defaults=defaults) for name in defaults)
    assert [(over.distribution, pair(over.shape)) for over in philox.overrides] == [
        ("normal", (128, 64)),
        ("uniform", (64, 64)),
    ]
    assert philox.overrides[1].gain == pytest.approx(200 / 130)
    assert philox.gain == pytest.approx((112 / 96 * 200 / 130) ** (1 / 3))
    assert xorwow.overrides == ()
    assert xorwow.gain == 1.0
    assert sobol.overrides == philox.overrides


def test_buffers_of_several_sizes_are_compared_each_with_its_own_default():
    large = rows("xorwow", {"uniform/float": {(256, 512): 100.0, (64, 512): 110.0}}, bytes=2**30)
    small = rows("xorwow", {"uniform/float": {(256, 512): 1000.0, (64, 512): 1210.0}}, bytes=2**24)
    decision = decide(large + small)
    assert [ratio.case.bytes for ratio in decision.ratios] == [2**24, 2**30]
    assert [ratio.ratio for ratio in decision.ratios] == pytest.approx([1.21, 1.1])
    assert decision.score == pytest.approx(math.sqrt(1.21 * 1.1))


def test_generators_and_architectures_are_chosen_for_one_by_one_and_the_unknown_are_said():
    speeds = {"uniform/float": {(256, 512): 100.0, (64, 512): 120.0}}
    found = rows("xorwow", speeds) + rows("xorwow", speeds, "sm_90") + rows("wellrng", speeds)
    found += rows("mrg32k3a", {"uniform/float": {(64, 512): 120.0}})
    selection = choose_shapes(found)
    assert [(decision.generator, decision.architecture) for decision in selection.decisions] == [
        ("xorwow", "gfx90a"),
        ("xorwow", "sm_90"),
    ]
    assert [str(complaint).partition(";")[0] for complaint in selection.complaints] == [
        "f.json: uniform/float: wellrng has no default shape",
        "f.json: mrg32k3a on gfx90a: the default 256x512 was not measured for uniform/float",
        "mrg32k3a on gfx90a: nothing can be compared with the default",
    ]


def test_a_winner_on_the_edge_is_told():
    speeds = {"uniform/float": {(256, grid): float(grid) for grid in (512, 1024, 2048)}}
    decision = decide(rows("xorwow", speeds))
    assert [remark.detail for remark in decision.remarks] == [
        "256x2048 has the largest grid that was measured; try further ones"
    ]


@pytest.mark.parametrize(
    ("units", "sizes"),
    [
        (104, [128, 256, 416, 512, 520, 832, 1024, 1040, 1664, 2048, 3328]),
        (132, [128, 256, 512, 528, 660, 1024, 1056, 1320, 2048, 2112]),
        (1, [128, 256, 512, 1024, 2048]),
        (32, [128, 160, 256, 320, 512, 1024, 2048]),
    ],
)
def test_grid_sizes_are_rocrands(units, sizes):
    assert list(grid_sizes(units)) == sizes


# The command line.
