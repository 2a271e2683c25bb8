"""Combining the measurements of several rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tunesmith.bench import median_interval
from tunesmith.records import Estimate, Measurement, Outcome
from tunesmith.store import FULL, combined_rounds, full_round_name


def measured(samples):
    return Measurement(Outcome.OK, samples=tuple(samples), estimate=median_interval(samples))


def test_the_rounds_medians_median_counts_and_failures_do_not():
    first, second, third = measured([1.0] * 7), measured([2.0] * 7), measured([4.0] * 7)
    combined = combined_rounds(first, {"full/2": second, "full/3": third, "full/4": Measurement(Outcome.CRASH)})
    assert combined.estimate == Estimate(2.0, 1.0, 4.0, 21)
    assert len(combined.samples) == 21


def test_one_round_is_the_interval_of_its_samples():
    samples = [1.0, 1.2, 0.9, 1.1, 1.05, 0.95, 1.3]
    assert combined_rounds(measured(samples), {}) == measured(samples)
    assert combined_rounds(measured(samples), {FULL: measured([9.0] * 7)}) == measured(samples), (
        "itself is no further round"
    )


def test_without_a_time_there_is_nothing_to_combine():
    """A first round that failed stays a failure, even if it has a time and later rounds ran."""
    later = {full_round_name(2): measured([2.0] * 7), full_round_name(3): measured([3.0] * 7)}
    for first in (Measurement(Outcome.CRASH), replace(measured([1.0] * 7), outcome=Outcome.WRONG_RESULT)):
        assert combined_rounds(first, later) == first
        assert combined_rounds(measured([1.0] * 7), {full_round_name(2): first}) == measured([1.0] * 7)
    untimed = Measurement(Outcome.OK)
    assert combined_rounds(untimed, {full_round_name(2): untimed}) == untimed
    assert combined_rounds(untimed, later).estimate == Estimate(2.5, 2.0, 3.0, 14)


def test_a_round_that_was_disturbed_moves_the_time_no_further_than_to_the_next_round():
    rounds = {full_round_name(2): measured([1.1] * 7), full_round_name(3): measured([9.0] * 7)}
    assert combined_rounds(measured([1.0] * 7), rounds).estimate == Estimate(1.1, 1.0, 9.0, 21)


def test_rounds_tell_two_kernels_apart_only_where_the_machine_lets_them():
    """The machine's speed changes by a tenth between rounds. Intervals of one round put two kernels of nearly the same
    speed in the wrong order half of the time, those of three rounds once in twenty (3! 3! / 6!) at most."""
    random = np.random.default_rng(5)

    def rounds(seconds, count):
        shifts = random.lognormal(0, 0.1, count)
        first, *later = (measured(list(seconds * shift * random.normal(1, 0.01, 10))) for shift in shifts)
        rounds = {full_round_name(number): taken for number, taken in enumerate(later, start=2)}
        return combined_rounds(first, rounds).estimate

    wrong = {}
    for count in (1, 3):
        pairs = [(rounds(1.0, count), rounds(1.01, count)) for _ in range(1000)]
        wrong[count] = sum(fast.low > slow.high for fast, slow in pairs) / len(pairs)
    assert wrong[1] > 0.4
    assert wrong[3] < 1 / 20 + 0.015, "two standard deviations of the share in a thousand pairs"
