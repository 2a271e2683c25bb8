"""Candidates outside of a race that lose by far: a full measurement, of the fewest samples."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from bench_jobs import GPU, QUICK, batch, job, problem
from tunesmith.bench import Bench, Policy
from tunesmith.bench.timing import FAR, time_plan

SCATTERED = Policy(noise=1e-6, sampling_seconds=1e9, minimum_samples=8, maximum_samples=40)
"""A policy whose noise no scattered times reach, so that only a lost cause ends the sampling early."""


def scattered(lowest):
    """Times from `lowest` to 1.4 times it, always in the same order."""
    times = itertools.cycle([1.4 * lowest, 1.2 * lowest, lowest, 1.3 * lowest, 1.1 * lowest])
    return lambda: next(times)


def timed(lowest, far_above):
    return time_plan(scattered(lowest), SCATTERED, math.inf, lambda: 0.0, far_above)


def test_a_candidate_that_lost_by_far_has_the_fewest_samples_and_has_not_raced():
    lost = timed(2.0, 1.99)
    assert len(lost.samples) == SCATTERED.minimum_samples
    assert not lost.raced
    assert lost.estimate.low == 2.0
    assert lost.estimate.high == 2.8


@pytest.mark.parametrize("far_above", [2.4, 2.5, math.inf])
def test_a_candidate_whose_interval_reaches_the_limit_is_sampled_on(far_above):
    """The median is 2.4."""
    assert len(timed(2.0, far_above).samples) == SCATTERED.maximum_samples


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
