"""Warm-up, stopping, racing and blocks, with simulated clocks and times."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

from tunesmith.bench import Policy
from tunesmith.bench.timing import interleave, lost_above, time_plan, warm_up


def no_clock():
    return 0.0


def noisy(seconds, sigma, seed):
    draw = np.random.default_rng(seed).standard_normal
    normals = itertools.chain.from_iterable(iter(lambda: draw(200).tolist(), None))
    return lambda: seconds * math.exp(sigma * next(normals))


def test_a_ramp_is_warmed_away_before_the_first_sample():
    ramp = itertools.chain([5.8, 4.0, 3.0, 2.5, 2.0, 1.7], itertools.repeat(1.46))
    timed = time_plan(lambda: next(ramp) * 1e-3, Policy(), math.inf, no_clock)
    assert set(timed.samples) == {1.46e-3}


def test_warm_up_ends_when_its_time_is_used_up_even_if_nothing_is_stable():
    times = itertools.count(1)
    taken = warm_up(lambda: next(times) * 0.03, Policy(warm_up_seconds=0.2), no_clock)
    assert len(taken) <= 4


@pytest.mark.parametrize(("medians", "taken"), [((3.0, 2.0), 6), ((3.125, 2.0, 2.0), 9), ((2.0, 4.0), 6)])
def test_warm_up_ends_when_two_medians_of_three_differ_by_no_more_than_the_noise_of_the_later(medians, taken):
    """The noise allowed is a half. Every three times have an outlier, which the median hides."""
    times = iter([50.0, *(time for median in medians for time in (median, 40.0, median)), math.nan])
    assert len(warm_up(lambda: next(times), Policy(noise=0.5, warm_up_seconds=1e9), no_clock)) == taken


def test_without_time_to_warm_up_there_are_two_times_beside_the_first():
    times = itertools.count()
    assert warm_up(lambda: next(times), Policy(warm_up_seconds=0.0), no_clock) == [1, 2]


@pytest.mark.parametrize("origin", [-4096.0, 0.0, 4096.0])
@pytest.mark.parametrize(("unit", "step"), [(1e-9, 1 / 16), (1 / 32, 0.0)])
def test_time_is_used_up_on_the_wall_or_on_the_device_whatever_the_clock_began_with(unit, step, origin):
    """An execution takes `step` seconds on the wall, and one unit or three on the device, so no median is known well.
    Both amount to a sixteenth of a second an execution."""
    wall, units = itertools.count(origin, step), itertools.cycle([1, 3])
    now = [next(wall)]

    def take():
        now[0] = next(wall)
        return next(units) * unit

    warm = warm_up(take, Policy(warm_up_seconds=0.25), lambda: now[0])
    assert len(warm) == 3, "the first, which is dropped, takes time too"
    timed = time_plan(take, Policy(warm_up_seconds=0.0, sampling_seconds=1.0), math.inf, lambda: now[0])
    assert len(timed.samples) == 17, "the sixteenth ends just in time"


@pytest.mark.parametrize(("most", "samples"), [(1, 6), (6, 6), (7, 7), (9, 9)])
def test_there_are_no_more_samples_than_allowed_unless_an_interval_needs_them(most, samples):
    units = itertools.cycle([1e-3, 3e-3])
    policy = Policy(minimum_samples=1, maximum_samples=most)
    assert len(time_plan(lambda: next(units), policy, math.inf, no_clock).samples) == samples


def test_equal_samples_are_known_well_enough_for_a_policy_that_allows_no_noise():
    assert len(time_plan(lambda: 1e-3, Policy(noise=0.0, minimum_samples=8), math.inf, no_clock).samples) == 8


def test_a_race_is_lost_by_a_time_that_is_a_fifth_over_the_rivals():
    """A candidate whose interval only reaches that time has not lost."""
    assert lost_above(1e-3) == pytest.approx(1.2e-3)
    assert not time_plan(lambda: 1.2e-3, Policy(), 1.2e-3, no_clock).raced
    assert time_plan(lambda: 1.21e-3, Policy(), 1.2e-3, no_clock).raced


def test_a_steady_time_takes_the_fewest_samples_and_a_noisy_one_more():
    steady = time_plan(lambda: 1e-3, Policy(minimum_samples=7), math.inf, no_clock)
    shaky = time_plan(noisy(1e-3, 0.05, 0), Policy(minimum_samples=7), math.inf, no_clock)
    assert len(steady.samples) == 7
    assert 30 < len(shaky.samples) <= 200
    assert abs(shaky.estimate.seconds - 1e-3) < 3e-5


def test_sampling_ends_with_its_time_but_never_below_six_samples():
    slow = time_plan(noisy(0.5, 0.3, 0), Policy(minimum_samples=1, sampling_seconds=1.0), math.inf, no_clock)
    assert len(slow.samples) == 6


def test_the_provably_slower_is_stopped_early_and_the_equal_is_not():
    policy = Policy(noise=0.002, sampling_seconds=10.0)
    slower = time_plan(noisy(1.2e-3, 0.05, 1), policy, 1e-3, no_clock)
    equal = time_plan(noisy(1.0e-3, 0.05, 2), policy, 1.02e-3, no_clock)
    assert slower.raced
    assert len(slower.samples) < 30
    assert not equal.raced
    assert len(equal.samples) == 200


def test_the_hopeless_is_not_sampled_at_all_yet_has_a_time():
    hopeless = time_plan(noisy(10e-3, 0.05, 1), Policy(), 1e-3, no_clock)
    assert hopeless.raced
    assert len(hopeless.samples) <= 6
    assert hopeless.estimate.seconds > 8e-3


def test_a_race_is_lost_by_the_lower_end_of_the_interval_and_not_by_a_faster_sample():
    """Of seven or eight samples the interval begins with the smallest, of nine with the second smallest."""
    times = itertools.chain([2e-3] * 3, [1e-3], itertools.repeat(2e-3))
    timed = time_plan(lambda: next(times), Policy(warm_up_seconds=0.0, minimum_samples=7), 1.2e-3, no_clock)
    assert (len(timed.samples), timed.raced) == (9, True)


@pytest.mark.parametrize(("slower", "sampled"), [(2.9, True), (3.0, True), (3.1, False)])
def test_the_hopeless_is_three_times_as_slow_as_the_best(slower, sampled):
    calls = itertools.count(1)
    timed = time_plan(lambda: next(calls) and slower * 1e-3, Policy(), 1e-3, no_clock)
    warm = len(warm_up(lambda: slower * 1e-3, Policy(), no_clock))
    assert timed.raced
    assert next(calls) - 2 - warm == (Policy().minimum_samples if sampled else 0), "the first is dropped"


def test_one_execution_near_the_best_is_enough_to_be_sampled():
    """Another process may have disturbed all other executions of the warm-up."""
    times = itertools.chain([9e-3, 9e-3, 1e-3], itertools.repeat(9e-3))
    assert time_plan(lambda: next(times), Policy(minimum_samples=30), 1e-3, no_clock).samples == (9e-3,) * 30


def test_racing_costs_no_more_regret_than_noise_and_saves_most_of_the_samples():
    """30 spaces of 40 candidates with 5 % noise: the winner by racing is compared with the winner without racing. Both
    see the same noise, so a right rule finds the same winner. The test notices a race by single samples, or one that
    ends 3 % too early."""
    policy = Policy(noise=0.01, sampling_seconds=10.0)
    regrets, taken = {True: [], False: []}, {True: 0, False: 0}
    for space in range(30):
        truth = 1e-3 * (1 + np.random.default_rng(space).exponential(0.3, 40))
        for racing in (True, False):
            best, medians = math.inf, []
            for index, seconds in enumerate(truth):
                take = noisy(seconds, 0.05, 1000 * space + index)
                timed = time_plan(take, policy, best if racing else math.inf, no_clock)
                best = min(best, timed.estimate.high)
                medians.append(timed.estimate.seconds)
                taken[racing] += len(timed.samples)
            regrets[racing].append(truth[int(np.argmin(medians))] / truth.min() - 1)
    assert statistics.fmean(regrets[True]) < statistics.fmean(regrets[False]) + 0.002
    assert max(regrets[True]) < 0.03
    assert taken[True] < 0.5 * taken[False]


def test_a_lucky_start_of_a_slow_candidate_is_not_raced_against_its_rivals_median():
    """Racing compares intervals: a candidate that is 1 % slower is within the uncertainty of few samples."""
    raced = [time_plan(noisy(1.01e-3, 0.03, seed), Policy(noise=0.02), 1.01e-3, no_clock).raced for seed in range(200)]
    assert statistics.fmean(raced) < 0.1


def test_interleaved_samples_of_one_block_share_what_happened_in_it():
    """A disturbance that changes from round to round does not change the ratios, because samples are aligned."""
    calls = itertools.count()
    ratio = 1.1

    def take(factor):
        # Slow drift over all executions, 100 % from first to last.
        return lambda: factor * 1e-3 * (1 + next(calls) / 800)

    policy = Policy(confirm_blocks=15, sampling_seconds=0.3)
    a, b = interleave([take(1.0), take(ratio)], policy)
    assert len(a) == len(b) == 15
    ratios = [y / x for x, y in zip(a, b, strict=True)]
    assert abs(statistics.fmean(ratios) - ratio) < 0.01
    assert max(a) / min(a) > 1.2


@pytest.mark.parametrize(
    ("seconds", "blocks", "length"),
    [
        (0.009, 7, 4),
        (0.0101, 7, 3),
        (0.02, 7, 1),
        (1.0, 7, 1),
        (0.0019, 7, 25),
        (0.0, 7, 25),
        (0.06, 1, 4),
        (0.06, 0, 4),
    ],
)
def test_all_blocks_of_a_finalist_take_a_third_of_the_time_for_samples(seconds, blocks, length):
    """The policy allows a second, of which 0.35 are for blocks. A block's first execution, which is dropped, takes time
    too. A block has 1 to 25 others. Before the first block, four executions tell how long one takes."""
    calls = itertools.count()
    policy = Policy(confirm_blocks=blocks, sampling_seconds=1.0)
    interleave([lambda: next(calls) and seconds], policy)
    assert next(calls) == 4 + max(blocks, 6) * (1 + length)


@pytest.mark.parametrize(("host", "length"), [(0.0, 25), (0.5e-3, 25), (7.5e-3, 4), (1.0, 1)])
def test_the_hosts_part_of_a_sample_shortens_blocks(host, length):
    """A third of a second is for nine blocks: the time that the host takes for a launch counts as well."""
    now, calls = itertools.count(), itertools.count()
    policy = Policy(confirm_blocks=9, sampling_seconds=1.0)
    interleave([lambda: next(calls) and 1e-6], policy, clock=lambda: host * next(now))
    assert next(calls) == 4 + 9 * (1 + length)


@pytest.mark.parametrize("blocks", [1, 5, 6, 9])
def test_there_are_as_many_blocks_as_asked_for_and_no_fewer_than_an_interval_needs(blocks):
    samples = interleave([lambda: 1e-3] * 2, Policy(confirm_blocks=blocks))
    assert [len(series) for series in samples] == [max(blocks, 6)] * 2


def test_finalists_that_are_equal_end_early_though_the_policy_allows_no_noise():
    samples = interleave([lambda: 1e-3] * 2, Policy(noise=0.0, confirm_blocks=15), until_clear=True)
    assert [len(series) for series in samples] == [6, 6]


def test_the_more_rivals_there_are_the_clearer_each_must_lose_before_the_rounds_end_early():
    """After six rounds the second is slower than the first at 99.93 % confidence. That is more than the 99.9 % for two
    finalists, but three of them share the doubt, so each needs 99.95 %. One finalist has no rival to be clear of."""
    ratios = itertools.cycle([math.exp(0.1 + 0.0302), math.exp(0.1 - 0.0302)])

    def rounds(count):
        times = {0: 1e-3, 1: 1e-3, 2: 5e-3}

        def announce(index):
            if index == 1:
                times[1] = 1e-3 * next(ratios)

        samplers = [lambda index=index: times[index] for index in range(count)]
        return len(interleave(samplers, Policy(noise=0.01), announce, until_clear=True)[0])

    assert rounds(1) == Policy().confirm_blocks
    assert rounds(2) == 6
    assert 6 < rounds(3) < Policy().confirm_blocks


@pytest.mark.parametrize(("scatter", "blocks"), [(0.002, 6), (0.05, 15)])
def test_finalists_that_differ_by_less_than_half_the_noise_end_early_and_others_do_not(scatter, blocks):
    """The policy allows 2 % noise. A time that alternates by 0.2 % is within 1 % after six blocks, by 5 % never."""
    calls = itertools.count()
    steady, alternating = lambda: 1e-3, lambda: 1e-3 * (1 + scatter * (next(calls) // 20 % 2))
    policy = Policy(noise=0.02, confirm_blocks=15, sampling_seconds=0.5)
    assert [len(series) for series in interleave([steady, alternating], policy, until_clear=True)] == [blocks] * 2
    assert [len(series) for series in interleave([steady, alternating], policy)] == [15] * 2


def test_the_order_of_blocks_is_drawn_anew_each_round_and_repeats_with_the_seed():
    def order(seed):
        announced = []
        interleave([lambda: 1e-3] * 4, replace(Policy(), seed=seed), announced.append)
        return announced[4:]

    rounds = [tuple(order(0)[i : i + 4]) for i in range(0, 60, 4)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in rounds)
    assert len(set(rounds)) > 5
    assert order(0) == order(0) != order(1)


@pytest.mark.parametrize("seconds", [0.01, 1.0])
def test_the_first_execution_of_a_block_is_dropped(seconds):
    """Every first execution after another candidate is ten times slower here, since caches are cold. The median of a
    long block hides it; a block of one execution must not contain it either."""
    last = []

    def take(name):
        def run():
            cold = last[-1:] != [name]
            last.append(name)
            return 1e-2 if cold else 1e-3

        return run

    a, b = interleave([take("a"), take("b")], Policy(sampling_seconds=seconds))
    assert set(a) == set(b) == {1e-3}


def test_the_very_first_execution_is_in_no_time():
    """It loads code and touches memory for the first time. So it is not among the times of the warm-up, the samples, or
    the times of a hopeless candidate."""

    def take():
        times = itertools.chain([5.0], itertools.repeat(1e-3))
        return lambda: next(times)

    assert set(warm_up(take(), Policy(), no_clock)) == {1e-3}
    for limit in (math.inf, 1e-4):
        timed = time_plan(take(), Policy(warm_up_seconds=0.0), limit, no_clock)
        assert (set(timed.samples), timed.raced) == ({1e-3}, limit < 1)


def test_one_cold_execution_makes_no_candidate_hopeless():
    """The dropped execution does not count. A candidate that is fast afterwards is sampled."""
    first = itertools.chain([5.0, 1e-3], itertools.repeat(1e-3))
    assert not time_plan(lambda: next(first), Policy(), 1e-3, no_clock).raced
