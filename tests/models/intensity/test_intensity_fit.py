"""Cut points, trees, cross-validation and intervals: compared with brute force, and on synthetic tuning."""

from __future__ import annotations

import math
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuned_samples import BREAKS, ORIGIN, products, sample
from tunesmith.models.intensity.fit import segments
from tunesmith.models.intensity.fit.bootstrap import cut_intervals, explained_intervals, group_draws
from tunesmith.models.intensity.fit.comparison import PUBLISHED, FitSettings, compare_rules
from tunesmith.models.intensity.fit.cross_validation import (
    HeldOut,
    chosen_by_one_standard_error,
    constant_losses,
    fold_numbers,
    held_out_cuts,
    held_out_labels,
)
from tunesmith.models.intensity.fit.fitting import fit_cut_points, fit_percentiles, fit_tree
from tunesmith.models.intensity.fit.losses import NEVER_RAN, LogRegret, Loss, SquaredError
from tunesmith.models.intensity.fit.percentile_fit import line_fit
from tunesmith.models.intensity.fit.segments import bucket_numbers, segmentations, separating
from tunesmith.models.intensity.fit.tree import TreeLeaf, TreeSplit, grown, leaves, tree_decisions
from tunesmith.models.intensity.metrics import METRICS


def brute_force(values, loss, buckets, weights, pins, least_products):
    """The least loss of all segmentations, by trying each; infinite if there is none."""
    distinct = sorted(set(values))
    best = math.inf
    for chosen in combinations(distinct[1:], buckets - 1):
        # Each pin must separate the same products as one of the cut points.
        if any(not any(below_of(values, pin) == below_of(values, cut) for cut in chosen) for pin in pins):
            continue
        numbers = bucket_numbers(chosen, values)
        if np.bincount(numbers, minlength=buckets).min() < least_products:
            continue
        sums = loss.sums(weights)
        total = sum(
            float(loss.cost(sums[numbers == number].sum(axis=0, keepdims=True))[0]) for number in range(buckets)
        )
        best = min(best, total)
    return best


def below_of(values, cut):
    return int((values < cut).sum())


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.integers(1, 3), st.sampled_from([1, 50, 1 << 20]))
def test_no_other_cut_points_cost_less(seed, is_regret, is_pinned, least_products, most_sums):
    """Compares dynamic programming with all segmentations, with ties, weights, pins and a bucket's least products,
    however many ends are looked at together."""
    generator = np.random.default_rng(seed)
    count = int(generator.integers(4, 10))
    values = generator.integers(1, 9, size=count).astype(float)
    loss: Loss = (
        LogRegret(generator.integers(0, 4, size=(count, 3)).astype(float))
        if is_regret
        else SquaredError(generator.normal(size=count))
    )
    weights = generator.integers(0, 3, size=count).astype(float)
    inner = sorted(set(values))[1:]
    pins = (inner[0] - 0.5,) if is_pinned and inner else ()
    with patch.object(segments, "_MOST_SUMS", most_sums):
        by_count = segmentations(values, loss, 4, weights=weights, pins=pins, least_products=least_products)
    for buckets in range(1, 5):
        least = brute_force(values, loss, buckets, weights, pins, least_products)
        if buckets not in by_count:
            assert math.isinf(least)
            continue
        # Running sums of at most 10 numbers of size 4: a few units in the last place of 100.
        assert by_count[buckets].loss == pytest.approx(least, abs=1e-12)
        assert set(pins) <= set(by_count[buckets].cuts)
        losses = loss.of_products(by_count[buckets].decided(values)) * weights
        assert float(losses.sum()) == pytest.approx(least, abs=1e-12)


def test_quantiles_instead_of_all_gaps_cost_no_less_and_little_more():
    tuned = sample(400)
    values, loss = tuned.values("mnk"), tuned.loss
    exact = segmentations(values, loss, 3)[3].loss
    coarse = segmentations(values, loss, 3, most_boundaries=50)[3].loss
    assert exact <= coarse <= constant_losses(loss).sum() * 0.1


@pytest.mark.parametrize(
    ("below", "above"), [(1.0, 2.0), (1e6, 1.0000001e6), (0.1, math.nextafter(0.1, 1)), (0.0, 3.0)]
)
def test_a_cut_point_is_short_and_separates(below, above):
    cut = separating(below, above)
    assert below < cut <= above
    if above > 1.5 * below:
        assert len(f"{cut:g}") <= 4


def test_a_pin_that_separates_nothing_is_refused():
    loss = SquaredError(np.arange(4.0))
    for pins in ((0.5,), (9.0,), (2.2, 2.4)):
        with pytest.raises(ValueError, match="pinned"):
            segmentations(np.array([1.0, 2, 3, 4]), loss, 4, pins=pins)


def test_a_configuration_that_did_not_run_is_chosen_for_no_product():
    """The configuration is the fastest on the other products, which must not compensate for the failure."""
    seconds = np.array([[1.0, 2.0], [1.0, 2.0], [np.nan, 2.0]])
    loss = LogRegret.of_times(seconds)
    assert loss.regrets[2].tolist() == [NEVER_RAN, 0.0]
    assert segmentations(np.array([1.0, 2, 3]), loss, 1)[1].decisions == (1.0,)
    assert segmentations(np.array([1.0, 2, 3]), loss, 2)[2].decisions == (0.0, 1.0)
    with pytest.raises(ValueError, match="no candidate"):
        LogRegret.of_times(np.array([[np.nan, np.nan]]))


def test_groups_stay_together_and_folds_are_even():
    groups = [f"g{number % 17}" for number in range(200)]
    folds = fold_numbers(groups, 5, seed=1)
    assert all(len({fold for fold, own in zip(folds, groups, strict=True) if own == group}) == 1 for group in groups)
    counts = np.bincount(folds)
    assert len(counts) == 5
    # Groups have 11 or 12 products, so the largest fold has at most one group more than the smallest.
    assert counts.max() - counts.min() <= 12
    with pytest.raises(ValueError, match="one group"):
        fold_numbers(["a", "a"], 5, seed=1)


def test_a_held_out_product_has_no_say_in_its_own_decision():
    """Nonsense responses in one group change the decisions for all other groups, but not for this group."""
    tuned = sample(120)
    groups = np.array(tuned.groups)
    folds = fold_numbers(tuned.groups, 5, seed=0)
    responses = np.log(tuned.areas)
    spoilt = responses + 100.0 * (groups == groups[0])
    values = tuned.values("mnk")
    for count in (1, 3):
        clean, other = (held_out_cuts("mnk", values, SquaredError(y), folds, 3)[count - 1] for y in (responses, spoilt))
        in_group = groups == groups[0]
        expected = np.sqrt(clean.losses[in_group])
        assert np.abs(np.sqrt(other.losses[in_group]) - 100.0).max() <= expected.max() + 1e-6
        assert (other.losses[(folds != folds[0])] != clean.losses[folds != folds[0]]).any()


def test_a_label_that_occurs_only_in_one_fold_gets_the_decision_of_all_products():
    loss = SquaredError(np.array([1.0, 3.0, 9.0]))
    held = held_out_labels("r", np.array([0, 0, 1]), loss, np.array([0, 1, 2]))
    assert held.losses.tolist() == [4.0, 4.0, 49.0]


def test_one_standard_error_prefers_fewer_buckets():
    folds = np.repeat(np.arange(4), 2)
    noise = np.array([0.9, 1.1, 0.8, 1.2, 1.0, 1.0, 0.7, 1.3])
    steep = noise * np.repeat([0.5, 1.5, 0.5, 1.5], 2)

    def held(rule, buckets, shift):
        return HeldOut(rule, buckets, steep + shift, folds)

    error = held("x", 1, 0.0).standard_error
    assert error == pytest.approx(np.std([0.5, 1.5, 0.5, 1.5], ddof=1) / 2)
    judged = [held("a", 5, 0.0), held("a", 3, 0.9 * error), held("b", 3, 0.8 * error), held("a", 2, 1.1 * error)]
    chosen = chosen_by_one_standard_error(judged)
    assert (chosen.rule, chosen.buckets) == ("b", 3)


def test_a_fit_to_synthetic_tuning_finds_its_metric_and_its_cut_points():
    tuned = sample(300)
    fit = fit_cut_points(tuned, FitSettings(tuple(METRICS), resamples=60), ORIGIN)
    assert fit.comparison is not None
    rule = fit.heuristic.rule
    assert (rule.metric, len(rule.cut_points)) == ("mnk", 2)
    values = np.sort(tuned.values("mnk"))
    for cut, true in zip(rule.cut_points, BREAKS, strict=True):
        assert below_of(values, cut.value) == below_of(values, true), "no product lies between the two"
        assert cut.low <= cut.value <= cut.high
    assert [seed.configuration["MacroTile"] for seed in fit.heuristic.seeds] == [(16, 16), (64, 64), (128, 128)]
    assert [round(seed.tile_area) for seed in fit.heuristic.seeds] == [256, 4096, 16384]
    chosen = fit.comparison.chosen
    assert chosen.in_sample == pytest.approx(1.0)
    assert chosen.explained > fit.comparison.score(PUBLISHED).explained + 0.2


def test_a_matrix_of_times_decides_by_regret():
    """Two candidates are each twice as fast on one side of 1e8, so the cut point is there, and nothing is lost."""
    small = np.array([product.mnk < 1e8 for product in products(120)])
    seconds = np.stack([np.where(small, 1.0, 2.0), np.where(small, 2.0, 1.0), np.full(120, 1.9)], axis=1)
    fit = fit_cut_points(sample(120, seconds=seconds, candidates=3), FitSettings(("mnk", "mn"), resamples=20), ORIGIN)
    assert [seed.configuration["Candidate"] for seed in fit.heuristic.seeds] == [0, 1]
    assert fit.heuristic.rule.metric == "mnk"
    values = sample(120).values("mnk")
    assert below_of(values, fit.heuristic.rule.cut_points[0].value) == int(small.sum())
    assert fit.heuristic.scores["efficiency"] > 0.95


def test_a_tree_finds_what_no_single_metric_tells():
    """Tall and wide products need different tiles: two questions tell them apart, cut points along M N K do not."""
    tuned = sample(200)
    m, n = tuned.values("m"), tuned.values("n")
    loss = SquaredError(np.where(m < 300, 0.0, np.where(n < 300, 1.0, 5.0)))
    values = {"m": m, "n": n}
    assert segmentations(tuned.values("mnk"), loss, 3)[3].loss > 1.0
    tree = grown(values, loss, 2)
    assert isinstance(tree, TreeSplit)
    assert {tree.feature, *(side.feature for side in (tree.below, tree.beyond) if isinstance(side, TreeSplit))} == {
        "m",
        "n",
    }
    assert len(leaves(tree)) == 3
    assert loss.of_products(tree_decisions(tree, values)).sum() == pytest.approx(0.0, abs=1e-12)
    assert isinstance(grown(values, SquaredError(np.ones(200)), 3), TreeLeaf), "nothing to gain, nothing asked"


def test_a_fitted_tree_decides_as_its_leaves_do():
    tuned = sample(200)
    fit = fit_tree(tuned, FitSettings(("mnk",), depths=(1, 2)), ORIGIN)
    numbers = [fit.heuristic.bucket(product) for product in tuned.products]
    assert np.bincount(numbers).tolist() == [seed.products for seed in fit.heuristic.seeds]
    areas = [fit.heuristic.seed(product).tile_area for product in tuned.products]
    assert np.corrcoef(np.log(areas), np.log(tuned.areas))[0, 1] > 0.99


def test_intervals_hold_the_share_and_narrow_with_more_groups():
    generator = np.random.default_rng(3)
    widths = []
    for count in (40, 640):
        responses = generator.normal(size=count)
        losses = 0.3 * generator.normal(size=count) ** 2
        constant = (responses - responses.mean()) ** 2
        groups = [str(number) for number in range(count)]
        ((low, high), (better_low, better_high)), leads = explained_intervals([losses, constant], constant, groups)
        assert low < 1 - losses.sum() / constant.sum() < high
        assert (better_low, better_high) == (0.0, 0.0), "the constant decision itself explains nothing"
        assert leads[0] == (0.0, 0.0)
        widths.append(high - low)
    # Sixteen times the groups: a quarter of the width, by the square root.
    assert widths[1] < widths[0] / 2


def test_a_pinned_cut_point_has_no_width():
    tuned = sample(200)
    ((low, high), (other_low, other_high)) = cut_intervals(
        tuned.values("mnk"), tuned.loss, 3, tuned.groups, pins=(5e6,), resamples=30
    )
    assert (low, high) == (5e6, 5e6) or (other_low, other_high) == (5e6, 5e6)


def test_q2_is_r2_of_lines_that_leave_a_point_out():
    generator = np.random.default_rng(5)
    x, y = generator.normal(size=9), generator.normal(size=9)
    fitted = line_fit(x, y, [str(row) for row in range(9)], 50, 0)
    errors = []
    for left in range(9):
        rest = np.arange(9) != left
        slope, intercept = np.polyfit(x[rest], y[rest], 1)
        errors.append(y[left] - slope * x[left] - intercept)
    assert fitted.q2 == pytest.approx(1 - np.square(errors).sum() / np.square(y - y.mean()).sum())
    assert fitted.r2 == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)
    columns = np.stack([np.ones(9), x], axis=1)
    assert fitted.most_leverage == pytest.approx(np.diag(columns @ np.linalg.pinv(columns)).max())
    with pytest.raises(ValueError, match="2 products"):
        line_fit(x[:2], y[:2], ["a", "b"], 50, 0)


def test_the_interval_of_a_line_draws_groups():
    """Products of one group are alike, so three groups of many products tell little more than three products."""
    generator = np.random.default_rng(6)
    x = np.repeat([1.0, 2.0, 3.0], 50) + generator.normal(scale=0.01, size=150)
    y = np.repeat([1.0, 4.0, 2.0], 50) + generator.normal(scale=0.01, size=150)
    grouped = line_fit(x, y, [str(row // 50) for row in range(150)], 500, 0).r2_interval
    single = line_fit(x, y, [str(row) for row in range(150)], 500, 0).r2_interval
    assert grouped[1] > 0.99, "where one of the three groups is not drawn, a line through two is nearly exact"
    assert single[1] < 0.5


def test_the_interval_is_that_of_the_lines_through_what_was_drawn():
    """Sums of the groups give the R2 of each draw. A draw of too few products or of one intensity has no line."""
    generator = np.random.default_rng(2)
    groups = list("aabbcd")
    x, y = np.array([1e5, 1e5, 2.0, 3.0, 2.0, 1e5]), generator.lognormal(9, 1, 6)
    drawn = []
    for counts in group_draws(groups, 300, 5):
        drawn_x, drawn_y = (np.repeat(values, counts.astype(int)) for values in (x, y))
        if len(drawn_x) > 2 and np.ptp(drawn_x) > 0:
            drawn.append(np.corrcoef(drawn_x, drawn_y)[0, 1] ** 2)
    assert 0 < len(drawn) < 300
    assert line_fit(x, y, groups, 300, 5).r2_interval == pytest.approx(np.percentile(drawn, (2.5, 97.5)))


def test_an_r2_that_is_undefined_has_no_interval():
    """One solution is the fastest everywhere, so a constant decision has no loss, and there is no share to save."""
    tuned = sample(60, seconds=np.tile([1.0, 2.0], (60, 1)), candidates=2)
    chosen = compare_rules(tuned, FitSettings(("mnk",))).chosen
    assert math.isnan(chosen.explained)
    assert all(map(math.isnan, (*chosen.interval, *chosen.lead_interval)))
    losses = np.array([0.0, 0.0, 0.0, 1.0])
    ((low, high),), _ = explained_intervals([losses / 2], losses, list("abcd"), resamples=200)
    assert (low, high) == (0.5, 0.5), "draws without the one product that loses are left out"


def test_percentiles_cut_where_the_proposal_did():
    """A product at the lower percentile is in the low bucket; a product at the higher percentile is in the middle
    bucket."""
    tuned = sample(101)
    fit = fit_percentiles(tuned, tuned.values("intensity"), tuned.areas, FitSettings(("intensity",)), ORIGIN)
    intensities = tuned.values("intensity")
    low, high = np.percentile(intensities, [30, 80])
    assert [seed.products for seed in fit.heuristic.seeds] == [
        int((intensities <= low).sum()), int(((intensities > low) & (intensities <= high)).sum()),
        int((intensities > high).sum()),
    ]  # fmt: skip
    assert fit.percentiles is not None
    assert fit.percentiles.low.products == fit.heuristic.seeds[0].products


def test_too_few_buckets_for_the_pins_are_refused():
    with pytest.raises(ValueError, match="no rule"):
        compare_rules(sample(60), FitSettings(("mnk",), most_buckets=2, pins=(1e6, 1e9)))
