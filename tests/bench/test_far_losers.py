"""Candidates outside of a race that lose by far: a full measurement, of the fewest samples."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from bench_jobs import GPU, QUICK, batch, job, problem
from tunesmith.bench import Bench, Policy
from tunesmith.bench.statistics import median_interval, relative_half_width
from tunesmith.bench.timing import GAP_SHARE, time_plan

SCATTERED = Policy(noise=1e-6, sampling_seconds=1e9, minimum_samples=8, maximum_samples=40)
"""A policy whose noise no scattered times reach, so that only a lost cause ends the sampling early."""


def scattered(lowest):
    """Times from `lowest` to 1.4 times it, always in the same order."""
    times = itertools.cycle([1.4 * lowest, 1.2 * lowest, lowest, 1.3 * lowest, 1.1 * lowest])
    return lambda: next(times)


TWO_OR_MORE = itertools.cycle([2.0, 2.4, 2.8])


def test_a_candidate_that_lost_by_far_has_the_fewest_samples_and_has_not_raced():
    """Its warm-up times count."""
    calls = []
    lost = time_plan(lambda: calls.append(0) or next(TWO_OR_MORE), SCATTERED, math.inf, lambda: 0.0, rival=0.7)
    assert len(lost.samples) == SCATTERED.minimum_samples
    assert len(calls) == SCATTERED.minimum_samples + 1, "the first execution is dropped"
    assert not lost.raced
    assert lost.estimate.low == 2.0
    assert lost.estimate.high == 2.8


@pytest.mark.parametrize(("rival", "executions"), [(0.55e-3, 4), (0.56e-3, SCATTERED.minimum_samples + 1)])
def test_a_hopeless_candidate_has_three_samples_and_has_not_raced(rival, executions):
    """It has lost above 1.2 times the rival's time, and 2 ms are more than three times 0.66 ms."""
    calls, times = [], itertools.cycle([2.0e-3, 2.4e-3, 2.8e-3])
    timed = time_plan(lambda: calls.append(0) or next(times), SCATTERED, math.inf, lambda: 0.0, rival)
    assert len(calls) == executions
    assert len(timed.samples) == executions - 1, "the first execution is dropped"
    assert not timed.raced


@pytest.mark.parametrize("rival", [1.99, 2.5, math.inf])
def test_a_candidate_that_did_not_lose_by_far_is_sampled_on(rival):
    """The median is 2.4, and 2.0 is the least."""
    timed = time_plan(scattered(2.0), SCATTERED, math.inf, lambda: 0.0, rival)
    assert len(timed.samples) == SCATTERED.maximum_samples


@pytest.mark.parametrize(("share", "is_enough"), [(1.02, True), (0.98, False)])
def test_the_median_of_a_loser_may_be_off_by_a_share_of_its_gap(share, is_enough):
    """Fifteen samples are three of each time; the rival makes the gap that their interval needs, or a little less."""
    first = [sampler() for sampler in [scattered(2.0)] * 15]
    estimate = median_interval(first)
    gap = share * (relative_half_width(estimate) - SCATTERED.noise) / GAP_SHARE
    policy = replace(SCATTERED, minimum_samples=15, warm_up_seconds=0.0)
    rival = estimate.low / (1 + gap)
    assert (len(time_plan(scattered(2.0), policy, math.inf, lambda: 0.0, rival).samples) == 15) == is_enough


def test_a_bench_compares_with_the_best_of_the_same_race_and_problem(tmp_path):
    """The fastest comes first; without a race, only what is slower has fewer samples."""
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
    lost = [found[each.key].estimate.low > best for each in jobs]
    assert [len(found[each.key].samples) < policy.maximum_samples for each in jobs] == lost
    assert lost[0] is False
    assert lost[-1] is True
    assert len(found[jobs[-1].key].samples) == policy.minimum_samples
    assert all(len(found[each.key].samples) == policy.maximum_samples for each in other)
