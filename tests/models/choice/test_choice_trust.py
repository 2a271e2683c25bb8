"""The scale of doubts, and the caution, follow from what was expected of products that were held out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import choice_machine
from few_trees import few_trees
from tunesmith.models.choice.fit import growing
from tunesmith.models.choice.fit import held_out as held_out_module
from tunesmith.models.choice.fit.fitting import ChoiceLesson, best_of_first, fit_choice
from tunesmith.models.choice.fit.held_out import (
    CAUTIONS,
    FEW,
    FEW_CAUTION,
    HeldOutTimes,
    Trust,
    doubt_factor,
    doubts_from,
    ratio_errors,
)
from tunesmith.models.choice.trees import ensemble

NO_TREES = ensemble(0.0, [])


def test_doubts_are_scaled_to_the_errors_that_were_made():
    """Errors of 0.04 and 0.4 where the expected ones are half of them."""
    random = np.random.default_rng(0)
    times = random.normal(0, 0.05, (400, 6))
    errors = np.repeat([0.04, 0.4], 200)[:, None]
    logs = np.repeat(times[:, :1], 6, axis=1) + random.normal(0, 0.02, times.shape)
    times = logs + random.normal(0, 1, times.shape) * errors / math.sqrt(2)
    vendors = np.arange(6) == 5
    held_out = HeldOutTimes(logs, np.broadcast_to(errors / 2, logs.shape), times, np.zeros(400, int), vendors)
    assert doubt_factor(held_out) == pytest.approx(2, rel=0.1)


def test_errors_are_those_of_ratios_of_times_that_compete():
    """Five of ours with the vendor, two of ours alone, and the vendor alone. The third is expected to be the fastest of
    the first five, and is the slowest."""
    nan = math.nan
    expected = [[0.2, 0.3, 0.0, 0.4, 0.1, 0.5], [0.2, 0.1, nan, nan, nan, nan], [nan, nan, nan, nan, nan, 0.5]]
    off = [[0.1, 0.0, 0.7, -0.3, 0.2, 1.0], [0.3, 0.1, nan, nan, nan, nan], [nan, nan, nan, nan, nan, 1.0]]
    logs, vendors = np.array(expected), np.arange(6) == 5
    errors = ratio_errors(logs, logs + off, vendors)
    first = [-0.9, -1.0, -0.3, nan, -0.8, 0.3]
    np.testing.assert_allclose(errors, [first, [0.2, nan, nan, nan, nan, nan], [nan] * 6], atol=1e-12)


def test_doubts_are_learned_from_other_families(monkeypatch):
    """Times of one family that were changed change the doubts of the others, and not its own, since only the errors on
    the others teach them. What is expected is the same of both."""
    pytest.importorskip("sklearn.ensemble")
    # Expectations that do not depend on the times, so that the errors alone differ.
    monkeypatch.setattr(held_out_module, "grown", lambda cells, seed, more: growing.GrownTimes(NO_TREES, None))
    monkeypatch.setitem(growing.DOUBTS, "min_samples_leaf", 1)
    monkeypatch.setitem(growing.DOUBTS, "max_iter", 5)
    matrix = choice_machine.matrix(12)
    few = np.array(matrix.families) == "few"
    changed = replace(
        matrix, seconds=np.where(few[:, None] & (np.arange(matrix.seconds.shape[1]) == 0), 3, 1) * matrix.seconds
    )
    held, again = (
        ChoiceLesson.of(some, choice_machine.TARGET).held_out(0).families.doubts for some in (matrix, changed)
    )
    np.testing.assert_array_equal(held[few], again[few])
    assert not np.array_equal(held[~few], again[~few], equal_nan=True)


def test_products_are_held_out_by_themselves(monkeypatch):
    """Times of one product that were changed change what is expected of others of its family, and not of itself."""
    pytest.importorskip("sklearn.ensemble")
    monkeypatch.setitem(growing.TIMES, "max_iter", 3)
    monkeypatch.setitem(growing.TIMES, "min_samples_leaf", 1)
    matrix = choice_machine.matrix(12)
    changed = replace(matrix, seconds=np.where(np.arange(48)[:, None] == 5, 30.0, 1.0) * matrix.seconds)
    held, again = (ChoiceLesson.of(some, choice_machine.TARGET).held_out(0).products.logs for some in (matrix, changed))
    np.testing.assert_array_equal(held[5], again[5])
    others = (np.array(matrix.families) == matrix.families[5]) & (np.arange(48) != 5)
    assert not np.array_equal(held[others], again[others], equal_nan=True)


def test_a_fit_rests_its_trust_on_products_and_its_scores_on_families(monkeypatch):
    pytest.importorskip("sklearn.ensemble")
    # Few products have a caution with which all of these choices are the vendor's.
    monkeypatch.setattr(held_out_module, "FEW", 0)
    matrix = choice_machine.matrix(12)
    with few_trees(times=30):
        lesson = ChoiceLesson.of(matrix, choice_machine.TARGET)
        held_out = lesson.held_out(0)
        fit = fit_choice(matrix, choice_machine.TARGET, "bfloat16", (), ("", ""))
        doubts = doubts_from(lesson.cells.pairs, held_out.products.errors, 0)
    trust = Trust.of(held_out.products, 0.0)
    assert fit.model.caution == trust.caution
    expected = best_of_first(lesson.candidates.matrix, lesson.candidates.best, trust.cautious(held_out.families), 1)
    np.testing.assert_array_equal(fit.efficiencies, expected)
    of_products = best_of_first(lesson.candidates.matrix, lesson.candidates.best, trust.cautious(held_out.products), 1)
    assert not np.array_equal(fit.efficiencies, of_products)
    assert fit.model.doubts.base == pytest.approx(doubts.base + math.log(trust.factor))
    np.testing.assert_array_equal(fit.model.doubts.value, doubts.value)


def test_without_an_error_the_doubt_is_the_least():
    pytest.importorskip("sklearn.ensemble")
    trees = growing.grown_doubts(np.zeros((0, 3)), np.zeros(0), 0)
    np.testing.assert_allclose(trees.predict(np.ones((2, 3))), math.log(growing.LEAST_ERROR))
    same = growing.grown_doubts(np.arange(300.0).reshape(100, 3), np.zeros(100), 0)
    np.testing.assert_allclose(same.predict(np.ones((2, 3))), math.log(growing.LEAST_ERROR), atol=1e-4)


def two_solutions(rows, lost, gain=-0.3, doubtful_gain=-0.05, loss=0.4):
    """Ours and the vendor's: a certain gain at even products, a doubted small gain at odd ones, `lost` of which are
    losses."""
    odd = np.arange(rows) % 2 == 1
    logs = np.column_stack((np.where(odd, doubtful_gain, gain), np.zeros(rows)))
    times = logs.copy()
    times[np.flatnonzero(odd)[:lost], 0] = loss
    doubts = np.where(odd, 0.3, 0.1)[:, None].repeat(2, axis=1)
    return HeldOutTimes(logs, doubts, times, np.zeros(rows, int), np.array([False, True]))


@pytest.mark.parametrize(("lost", "loss", "takes_doubted"), [(10, 0.04, True), (50, 0.04, False), (200, 0.03, True)])
def test_caution_keeps_from_losing_against_the_vendor(lost, loss, takes_doubted):
    """500 doubted gains of 0.05 are worth about 25 losses of 0.04, since what is beyond 3 % of them counts a hundred
    times. What is lost up to there counts once."""
    held_out = two_solutions(1000, lost, loss=loss)
    trust = Trust.of(held_out, 0.0)
    chosen = trust.cautious(held_out).argmin(axis=1)
    assert chosen.tolist() == [0 if takes_doubted else row % 2 for row in range(1000)]
    assert (trust.caution == 0) == takes_doubted


@pytest.mark.parametrize(("noise", "is_bold"), [(0.0, False), (0.001, False), (0.0145, True)])
def test_what_noise_explains_is_not_regretted(noise, is_bold):
    """100 losses of 0.05 in logarithms beside 400 gains of 0.05. Of each loss 0.03 count once; the other 0.02 count a
    hundred times, but for the noise: 0.001 of two times of 0.001 each, 0.02 of two times of 0.0145."""
    trust = Trust.of(two_solutions(1000, 100, loss=0.05), noise)
    assert (trust.caution == 0.0) == is_bold


def test_the_least_caution_that_avoids_the_losses_is_taken():
    """Larger gains are given up only where they must be: the caution is just above the lost gain over its doubt."""
    held_out = two_solutions(1000, 7)
    trust = Trust.of(held_out, 0.0)
    below = max(caution for caution in CAUTIONS if caution < trust.caution)
    doubted = 0.3 * trust.factor
    assert below * doubted <= 0.05 < trust.caution * doubted


def test_where_losses_and_gains_are_in_balance_the_caution_is_in_the_middle():
    """Two kinds of doubted gains, each with slightly too many losses. It is best to avoid both kinds, but in many draws
    one kind or both are worth their losses. The caution is the one that avoids the more doubted kind."""
    kinds = [two_solutions(1000, 11, doubtful_gain=-0.02, loss=0.04) for _ in range(2)]
    kinds[1].doubts[:] /= 2
    tables = (np.concatenate([getattr(kind, name) for kind in kinds]) for name in ("logs", "doubts", "times"))
    held_out = HeldOutTimes(*tables, np.zeros(2000, int), kinds[0].vendors)
    trust = Trust.of(held_out, 0.0)
    taken = trust.cautious(held_out).argmin(axis=1).reshape(2, 1000) == 0
    odd = np.arange(1000) % 2 == 1
    assert [kind[odd].mean() for kind in taken] == [0.0, 1.0]
    assert taken[:, ~odd].all()
    assert Trust.of(held_out, 0.0) == trust, "the draws are the same"


@pytest.mark.parametrize(("rows", "largest"), [(FEW, 4.0), (FEW // 2, 2.5)])
def test_the_caution_is_the_best_of_a_draw(rows, largest):
    """In a third of the draws nothing is lost, and no caution is best. In the others the largest is, which alone avoids
    the only loss. The mean of both would give up all gains and not avoid the loss."""
    logs = np.column_stack((np.full(rows, -0.02), np.zeros(rows)))
    times, doubts = logs.copy(), np.full_like(logs, 0.02)
    times[0, 0], logs[0, 0], doubts[0] = 0.3, -0.39, 0.11
    trust = Trust.of(HeldOutTimes(logs, doubts, times, np.zeros(rows, int), np.array([False, True])), 0.0)
    assert trust.caution == largest


def test_only_rows_that_are_kept_decide():
    """Ten losses beside 940 gains are worth it, sixty beside 450 are not. Both parts have doubts."""
    held_out, rows = two_solutions(2000, 60, loss=0.04), np.arange(2000)
    bold, timid = (Trust.of(held_out.only(kept), 0.0) for kept in (rows >= 100, (rows < 120) | (rows >= 1100)))
    assert bold.caution == 0.0 < timid.caution
    assert min(bold.factor, timid.factor) > 0


def test_a_product_that_the_vendor_did_not_run_has_no_say():
    held_out = two_solutions(1000, 6, loss=0.04)
    assert Trust.of(held_out, 0.0).caution == 0.0
    lost = held_out.times[:, 0] > 0
    for table in (held_out.logs, held_out.times):
        table[~lost & (np.arange(1000) % 2 == 1), 1] = np.nan
    assert Trust.of(held_out, 0.0).caution > 0.0


def test_few_products_do_not_make_a_model_bold():
    """One loss, so that the doubt is not zero."""
    cautions = [Trust.of(two_solutions(count, 1, loss=0.04), 0.0).caution for count in (FEW - 1, FEW)]
    assert cautions == [FEW_CAUTION, 0.0]


def test_without_a_vendor_there_is_no_caution():
    held_out = replace(two_solutions(100, 0), vendors=np.array([False, False]))
    assert Trust.of(held_out, 0.0).caution == 0.0


def test_the_seed_of_a_fit_is_also_that_of_the_draws(monkeypatch):
    pytest.importorskip("sklearn.ensemble")
    seeds = []

    def drawn(count, resamples, seed):
        seeds.append(seed)
        return np.ones((1, count))

    monkeypatch.setattr(held_out_module, "drawn_counts", drawn)
    with few_trees(times=2):
        fit_choice(choice_machine.matrix(8), choice_machine.TARGET, "bfloat16", (), ("", ""), seed=7)
    assert seeds == [7]
