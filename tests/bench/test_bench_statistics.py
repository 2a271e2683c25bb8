"""Intervals have their confidence, checked by simulation with fixed seeds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tunesmith.bench import drift, median_interval, paired_log_ratio
from tunesmith.bench.statistics import interval_rank, relative_half_width
from tunesmith.protocol.intervals import paired_interval
from tunesmith.records import Estimate

SHAPES = {
    "normal": (lambda random, size: random.normal(1.0, 0.05, size), 1.0),
    "skewed": (lambda random, size: random.lognormal(0.0, 0.5, size), 1.0),
    "two modes": (
        lambda random, size: 1.0 + random.standard_exponential(size) * 0.01 + (random.random(size) < 0.3),
        None,
    ),
}


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize("count", [6, 7, 15, 40])
def test_the_interval_covers_the_median_in_at_least_95_of_100_cases(shape, count):
    draw, median = SHAPES[shape]
    samples = draw(np.random.default_rng(count), (3000, count))
    intervals = [median_interval(list(row)) for row in samples]
    covered = np.mean([interval.low <= median <= interval.high for interval in intervals])
    assert covered >= 0.95 - 0.012


@pytest.mark.parametrize("count", [*range(6, 42), 101, 500, 999, 1000])
def test_the_interval_is_no_wider_than_it_must_be(count):
    """The next narrower interval would cover less than 95 %, exactly by the binomial distribution."""

    def coverage(rank):
        return 1 - 2 * sum(math.comb(count, i) for i in range(rank)) / 2**count

    assert coverage(interval_rank(count)) >= 0.95 > coverage(interval_rank(count) + 1)


@pytest.mark.parametrize("count", [1001, 1002, 1500, 4000, 100_000])
def test_for_many_samples_the_interval_is_at_most_a_rank_wider_than_it_must_be(count):
    misses = 2 * stats.binom.cdf(np.arange(count // 2), count, 0.5)
    assert np.searchsorted(misses, 0.05) - interval_rank(count) in (0, 1)


def test_the_approximation_for_many_samples_continues_the_exact_rank():
    assert all(0 <= b - a <= 1 for a, b in itertools.pairwise(interval_rank(n) for n in range(980, 1020)))


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60), st.randoms())
def test_the_interval_encloses_the_median_whatever_the_order(samples, random):
    estimate = median_interval(samples)
    assert min(samples) <= estimate.low <= estimate.seconds <= estimate.high <= max(samples)
    shuffled = random.sample(samples, len(samples))
    assert median_interval(shuffled) == estimate


def test_below_six_samples_the_interval_is_the_whole_range():
    assert median_interval([3.0, 1.0, 2.0]) == Estimate(2.0, 1.0, 3.0, 3)
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


def test_the_paired_interval_covers_the_true_ratio_though_both_share_a_large_disturbance():
    random = np.random.default_rng(1)
    shared = random.lognormal(0, 0.5, (2000, 15))
    a = shared * random.lognormal(math.log(1.02), 0.01, (2000, 15))
    b = shared * random.lognormal(0, 0.01, (2000, 15))
    results = np.array([paired_log_ratio(list(x), list(y)) for x, y in zip(a, b, strict=True)])
    covered = np.mean((results[:, 1] <= math.log(1.02)) & (math.log(1.02) <= results[:, 2]))
    assert 0.935 <= covered <= 0.965
    # A difference of 2 % is found in most cases, though the disturbance is 50 %.
    assert np.mean(results[:, 1] > 0) > 0.9


@given(st.lists(st.tuples(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0)), min_size=2, max_size=20))
def test_exchanging_the_two_changes_only_the_sign(pairs):
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    mean, low, high = paired_log_ratio(a, b)
    assert paired_log_ratio(b, a) == pytest.approx((-mean, -high, -low), abs=1e-9)


def test_identical_samples_are_a_tie_with_no_doubt():
    assert paired_log_ratio([1.0, 2.0], [1.0, 2.0]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("count", [2, 3, 7, 15, 40])
def test_the_paired_interval_is_the_one_of_a_paired_t_test(count):
    """Also for few pairs, where one more degree of freedom would make the interval narrower by a third."""
    random = np.random.default_rng(count)
    a, b = random.lognormal(0, 0.1, (2, count))
    theirs = stats.ttest_rel(np.log(a), np.log(b)).confidence_interval(0.95)
    assert paired_log_ratio(list(a), list(b))[1:] == pytest.approx((theirs.low, theirs.high), rel=1e-9)
    for confidence in (0.5, 0.95, 0.99):
        theirs = stats.ttest_rel(a, b).confidence_interval(confidence)
        assert paired_interval(list(a - b), confidence) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_unpaired_samples_are_refused():
    with pytest.raises(ValueError, match="at least two pairs"):
        paired_log_ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("now", "alarm"),
    [
        (Estimate(1.10, 1.08, 1.12, 9), True),
        (Estimate(0.90, 0.88, 0.92, 9), True),
        (Estimate(1.04, 1.035, 1.045, 9), False),  # real and small
        (Estimate(1.10, 1.00, 1.20, 9), False),  # large and in doubt
        (Estimate(1.10, 1.02, 1.20, 9), False),  # the intervals touch
        (Estimate(0.90, 0.80, 0.98, 9), False),
    ],
)
def test_drift_alarms_on_what_is_both_certain_and_large(now, alarm):
    for unit in (1.0, 0.25):
        first, later = (
            Estimate(time.seconds * unit, time.low * unit, time.high * unit, 9)
            for time in (Estimate(1.0, 0.98, 1.02, 9), now)
        )
        found = drift(first, later)
        assert (found.ratio, found.alarm) == (now.seconds, alarm)


def test_the_relative_half_width_is_half_the_interval_over_the_median():
    assert relative_half_width(Estimate(2.0, 1.9, 2.3, 7)) == pytest.approx(0.1)
