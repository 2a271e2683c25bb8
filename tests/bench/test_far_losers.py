"""Candidates outside of a race that lose by far: a full measurement, of the fewest samples."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from bench_jobs import GPU, QUICK, batch, job, problem
from tunesmith.bench import Bench, Policy
from tunesmith.bench.statistics import median_interval, relative_half_width
from tunesmith.bench.timing import FAR, time_plan

SCATTERED = Policy(noise=1e-6, sampling_seconds=1e9, minimum_samples=8, maximum_samples=40)
"""A policy whose noise no scattered times reach, so that only a lost cause ends the sampling early."""


def scattered(lowest):
    """Times from `lowest` to 1.4 times it, always in the same order."""
    times = itertools.cycle([1.4 * lowest, 1.2 * lowest, lowest, 1.3 * lowest, 1.1 * lowest])
    return lambda: next(times)


def timed(lowest, rival):
    return time_plan(scattered(lowest), SCATTERED, math.inf, lambda: 0.0, rival)


def test_a_candidate_that_lost_by_far_has_the_fewest_samples_and_has_not_raced():
    lost = timed(2.0, 1.99 / FAR)
    assert len(lost.samples) == SCATTERED.minimum_samples
    assert not lost.raced
    assert lost.estimate.low == 2.0
    assert lost.estimate.high == 2.8


@pytest.mark.parametrize("rival", [2.4 / FAR, 2.5, math.inf])
def test_a_candidate_whose_interval_reaches_the_limit_is_sampled_on(rival):
    """The median is 2.4."""
    assert len(timed(2.0, rival).samples) == SCATTERED.maximum_samples


@pytest.mark.parametrize(
    ("rival", "share", "is_enough"),
    [(1.99, 0.34, True), (1.99, 0.33, False), (2.2, 0.34, False), (2.2, 1.01, True)],
)
def test_the_median_of_a_candidate_that_lost_need_be_known_less_well(rival, share, is_enough):
    """The noise that is asked for is a share of what fifteen samples reach, which are three of each time. With a rival
    of 2.2 nothing is lost yet."""
    first = [sampler() for sampler in [scattered(2.0)] * 15]
    policy = replace(SCATTERED, noise=share * relative_half_width(median_interval(first)), minimum_samples=15)
    samples = time_plan(scattered(2.0), replace(policy, warm_up_seconds=0.0), math.inf, lambda: 0.0, rival).samples
    assert (len(samples) == 15) == is_enough


def test_a_bench_compares_with_the_best_of_the_same_race_and_problem(tmp_path):
    """The fastest comes first; without a race, only what is slower by more than FAR has fewer samples."""
    tiles = ((8, 8), (8, 4), (4, 4), (2, 2))
    large, small = problem(512, 512, 512), problem(384, 384, 384)
    jobs = [job(size=large, ThreadTile=tile, FakeNoise=2) for tile in tiles]
    other = [
        job(size=large, ThreadTile=tiles[-1], LoopUnroll=4, FakeNoise=2),
        job(size=small, ThreadTile=tiles[-1], FakeNoise=2),
    ]
    policy = replace(QUICK, noise=1e-6, sampling_seconds=1e9, maximum_samples=30)
    with Bench(GPU, policy, tmp_path) as bench:
        found = {each.key: measurement for each, measurement in bench.run(batch(jobs, other))}
    assert not any(measurement.raced for measurement in found.values())
    best = found[jobs[0].key].estimate.high
    far = [found[each.key].estimate.low > FAR * best for each in jobs]
    assert [len(found[each.key].samples) for each in jobs] == [
        policy.minimum_samples if is_far else policy.maximum_samples for is_far in far
    ]
    assert far[0] is False
    assert far[-1] is True
    assert all(len(found[each.key].samples) == policy.maximum_samples for each in other)
