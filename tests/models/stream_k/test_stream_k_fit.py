"""The fit of stream-K's costs at its edges: units, few runs, times that are none, and the draws of the bootstrap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from stream_k_fakes import H200, runs_on
from tunesmith.models.stream_k.costs import COSTS, counts
from tunesmith.models.stream_k.decision_models import DeviceCapacity, StreamKRun
from tunesmith.models.stream_k.fit import ROUNDS, fit

CACHED = DeviceCapacity(132, 1, (1920, 3840))
"""An H200 with tiles of 256 x 128 x 64 in 16 bits: 60 MiB of cache."""


class SameDraw:
    """In place of a generator: every draw is the same residual."""

    def __init__(self, pick):
        self.pick = pick

    def choice(self, residuals, shape):
        return np.full(shape, self.pick(residuals))


def expected_seconds(runs, costs):
    return np.array([counts(run.work, run.choice, CACHED) for run in runs]) @ costs


def bounds(runs, pick):
    """The fitted costs with the ends of their intervals, if every draw is the picked residual."""
    costs, *_ = fit(runs, CACHED, SameDraw(pick), resamples=2)
    return np.array([(cost.fitted, cost.low, cost.high) for cost in costs]).T


def spread(runs, deviation, seed=0):
    factors = 1 + deviation * np.random.default_rng(seed).standard_normal(len(runs))
    return [StreamKRun(run.work, run.choice, float(run.seconds * f)) for run, f in zip(runs, factors, strict=True)]


FEWEST = [runs_on(CACHED)[index] for index in (3, 0, 26, 41, 12, 18, 42, 40, 38)]
"""As many runs as there are costs, of which they tell eight apart."""


@pytest.mark.parametrize("unit", [2.0**40, 2.0**-40])
def test_costs_are_in_the_unit_of_the_times_whatever_it_is(unit):
    runs = runs_on(CACHED, noise=0.01)
    longer = [StreamKRun(run.work, run.choice, run.seconds * unit) for run in runs]
    fits = [fit(timed, CACHED, np.random.default_rng(0), resamples=5) for timed in (runs, longer)]
    fitted, in_unit = (np.array([(cost.fitted, cost.low, cost.high) for cost in costs]) for costs, *_ in fits)
    np.testing.assert_allclose(in_unit, fitted * unit, rtol=1e-9)
    assert fitted[0, 0] > 0


@pytest.mark.parametrize(("noise", "fewest", "most"), [(0.0, 2, 2), (0.003, 3, ROUNDS - 1)])
def test_a_fit_ends_when_its_costs_hardly_change(monkeypatch, noise, fewest, most):
    """The first solution of runs without noise is exact, the second shows it."""
    solve, solved = scipy.optimize.nnls, []
    monkeypatch.setattr(scipy.optimize, "nnls", lambda *problem, **more: solved.append(1) or solve(*problem, **more))
    fit(runs_on(CACHED, noise=noise), CACHED, SameDraw(np.median), resamples=3)
    assert fewest <= len(solved) - 3 * 2 <= most, "a draw without residuals has runs without noise"


def test_as_many_runs_as_costs_can_be_fitted_and_a_run_fewer_cannot():
    assert len(FEWEST) == len(COSTS)
    costs, *_ = fit(FEWEST, CACHED, np.random.default_rng(0), resamples=2)
    fitted = np.array([cost.fitted for cost in costs])
    assert expected_seconds(FEWEST, fitted) == pytest.approx([run.seconds for run in FEWEST])
    with pytest.raises(ValueError, match="9 costs cannot be fitted to 8 runs"):
        fit(FEWEST[1:], CACHED, np.random.default_rng(0), resamples=2)


@pytest.mark.parametrize("seconds", [0.0, -1e-6])
def test_a_run_that_took_no_time_is_no_run_to_fit(seconds):
    runs = runs_on(H200)
    runs[5] = StreamKRun(runs[5].work, runs[5].choice, seconds)
    with pytest.raises(ValueError, match="cannot be fitted"):
        fit(runs, H200, np.random.default_rng(0), resamples=2)


@pytest.mark.parametrize(("runs", "count"), [(spread(FEWEST, 0.1), 8), (spread(runs_on(CACHED), 0.05), None)])
def test_residuals_are_drawn_about_their_median_and_as_wide_as_errors_are(runs, count):
    """A fit with as many costs as runs but for one has a single degree of freedom."""
    fitted, _, high = bounds(runs, np.max)
    used = np.count_nonzero(fitted)
    assert count in (None, used)
    residuals = np.array([run.seconds for run in runs]) / expected_seconds(runs, fitted) - 1
    widest = (residuals.max() - np.median(residuals)) * (len(runs) / (len(runs) - used)) ** 0.5
    assert widest > 1e-3
    assert expected_seconds(runs, high) == pytest.approx(expected_seconds(runs, fitted) * (1 + widest), rel=1e-6)


def test_a_draw_of_the_median_residual_is_the_fit_again():
    fitted, low, high = bounds(spread(runs_on(CACHED), 0.05)[:-1], np.median)
    assert low == pytest.approx(fitted, rel=1e-6)
    assert high == pytest.approx(fitted, rel=1e-6)


def test_a_draw_takes_a_run_at_most_nine_tenths_of_its_time():
    runs = runs_on(CACHED, noise=0.01)
    runs[20] = StreamKRun(runs[20].work, runs[20].choice, runs[20].seconds / 30)
    fitted, low, _ = bounds(runs, np.min)
    assert expected_seconds(runs, low) == pytest.approx(expected_seconds(runs, fitted) / 10, rel=1e-6)


def test_what_a_person_adjusted_counts_instead_of_the_fit():
    (cost, *_), *_ = fit(runs_on(H200), H200, np.random.default_rng(0), resamples=2)
    assert cost.value == cost.fitted > 0
    assert replace(cost, adjusted=0.0).value == 0.0
