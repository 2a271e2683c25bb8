"""The winner of a step: objectives, coverage, and uncertain times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats

from protocol_fakes import Exact, FakeOracle, Noisy, benchmark, phases, size, sizes
from tunesmith.protocol import Objective, TimeTable, run, winners
from tunesmith.protocol.intervals import faster, paired_interval
from tunesmith.records import Configuration, Estimate

FLOPS = FakeOracle(flops=lambda problem: float(problem.sizes[0]) ** 3)


def decide(
    measure,
    values,
    held=0,
    on=(1,),
    objective=Objective.GEOMEAN,
):
    """The decision of one step over the parameter `a`. 0 is not among its values, so by default there is no
    incumbent."""
    step = run(phases({"a": held}, benchmark(on=on, a=list(values)), objective=objective), measure, FLOPS).steps[0]
    decision = step.trials[0].decision
    assert decision is not None
    return decision


def winner(times, objective=Objective.GEOMEAN, held=0):
    """`times` by (value, size)."""
    values, on = ([*dict.fromkeys(key[index] for key in times)] for index in (0, 1))
    measure = Exact(lambda c, p: times.get((c.integer("a"), p.sizes[0])))
    return decide(measure, values, held, on, objective).winner.integer("a")


# Objectives


def test_each_objective_has_its_own_winner():
    """Work is the cube of the size: 1, 1000, 1000000."""
    times = {
        (1, 1): 1.0, (1, 10): 16.0, (1, 100): 120.0,
        (2, 1): 2.0, (2, 10): 10.0, (2, 100): 130.0,
        (3, 1): 1.4, (3, 10): 14.0, (3, 100): 134.0,
        (4, 1): 4.0, (4, 10): 20.0, (4, 100): 100.0,
    }  # fmt: skip
    assert {objective: winner(times, objective) for objective in Objective} == {
        Objective.GEOMEAN: 1,  # 1 x 1.6 x 1.2 = 1.92, against 2 x 1 x 1.3 = 2.6, 1.4 x 1.4 x 1.34 = 2.63 and 4 x 2 x 1
        Objective.MAX: 4,  # 1e6 / 100
        Objective.TOTAL_TIME: 4,  # 124, against 137, 142, 149.4
        Objective.WORST: 3,  # 1.4, against 1.6, 2 and 4
    }


def test_total_time_and_max_part_where_the_fastest_cell_is_not_the_longest():
    times = {(1, 1): 0.00001, (1, 100): 200.0, (2, 1): 1.0, (2, 100): 100.0}
    assert winner(times, Objective.MAX) == 1
    assert winner(times, Objective.TOTAL_TIME) == 2


def test_the_score_is_the_geometric_mean_of_relative_speeds_and_zero_for_a_missing_size():
    times = {(1, 1): 1.0, (1, 2): 8.0, (2, 1): 2.0, (2, 2): 4.0, (3, 1): 0.5}
    decision = decide(Exact(lambda c, p: times.get((c.integer("a"), p.sizes[0]))), [1, 2, 3], on=(1, 2))
    scores = {config["a"]: score for config, score in decision.scores.items()}
    assert scores == pytest.approx({1: math.sqrt(0.5 * 0.5), 2: math.sqrt(0.25 * 1.0), 3: 0.0})


@pytest.mark.parametrize("objective", list(Objective))
def test_whoever_misses_a_size_that_a_rival_covers_cannot_win(objective):
    assert winner({(1, 1): 0.01, (2, 1): 5.0, (2, 2): 5.0, (3, 1): 6.0, (3, 2): 6.0}, objective) == 2
    assert winner({(1, 1): 0.01, (2, 1): 5.0, (2, 2): 5.0}, objective, held=1) == 2


def test_a_size_that_nobody_ran_counts_for_nobody():
    measure = Exact(lambda c, p: c.integer("a") * 1.0 if p.sizes[0] == 1 else None)
    assert decide(measure, [1, 2], on=(1, 2)).winner["a"] == 1


def test_where_nobody_covers_all_sizes_the_one_that_covers_most_wins():
    assert winner({(1, 1): 1.0, (2, 2): 9.0, (2, 3): 9.0}) == 2


# Clear and not clear


def test_a_clear_winner_is_not_measured_again():
    measure = Exact(lambda c, p: c.integer("a") * 1.0)
    decision = decide(measure, [4, 1, 2], held=4)
    assert (decision.winner["a"], decision.ties, decision.incumbent_kept) == (1, (), False)
    assert not measure.confirms


@pytest.mark.parametrize(("seconds", "confirmed"), [(2.99, [[1, 2]]), (3.0, [[1, 2]]), (3.01, [])])
def test_an_incumbent_loses_by_its_first_time_only_if_that_is_over_three_times_the_best(seconds, confirmed):
    first = {1: (1.0, 0.99, 1.01), 2: (seconds, seconds, seconds), 3: (1.5, 1.49, 1.51)}
    measure = Scripted(first, {1: (1.0, 1.01, 1.0), 2: (0.9, 0.91, 0.9)})
    assert decide(measure, [1, 2, 3], held=2).winner["a"] == (2 if confirmed else 1)
    assert measure.confirmed == confirmed


def test_an_incumbent_that_may_have_met_a_slow_moment_is_measured_beside_what_would_replace_it():
    """The incumbent's first time is twice the best time, without doubt. Measured side by side, the incumbent is
    faster."""
    first = {1: (1.0, 0.99, 1.01), 2: (2.0, 1.98, 2.02), 3: (1.5, 1.49, 1.51)}
    measure = Scripted(first, {1: (1.0, 1.01, 1.0), 2: (0.9, 0.91, 0.9)})
    decision = decide(measure, [1, 2, 3], held=2)
    assert measure.confirmed == [[1, 2]]
    assert (decision.winner["a"], decision.incumbent_kept) == (2, True)


def test_first_times_that_a_change_of_the_machine_explains_are_no_reason_to_be_left_out():
    first = {1: (1.0, 0.999, 1.001), 2: (1.09, 1.089, 1.091), 3: (1.12, 1.119, 1.121)}
    measure = Scripted(first, {1: (1.0, 1.01, 1.0), 2: (0.9, 0.91, 0.9)})
    assert decide(measure, [1, 2, 3]).winner["a"] == 2
    assert measure.confirmed == [[1, 2]]


@pytest.mark.parametrize(("low", "confirmed"), [(1.1 * 0.99999, [[1, 2]]), (1.1, [[1, 2]]), (1.1 * 1.00001, [])])
def test_an_interval_that_just_reaches_the_best_one_after_a_change_of_the_machine_is_a_finalists(low, confirmed):
    """The best interval ends at 1, and the machine may be a tenth slower. Rounding does not decide."""
    measure = Scripted({1: (0.9, 0.8, 1.0), 2: (1.2, low, 1.3)}, dict.fromkeys((1, 2), (1.0, 1.0, 1.0)))
    decision = decide(measure, [1, 2])
    assert (measure.confirmed, decision.overlapping) == (confirmed, len(confirmed) + 1)


def test_in_the_final_the_least_mean_of_the_blocks_wins_whatever_the_order_of_the_file():
    """They cannot be told apart; 3 has the smallest mean."""
    again = {1: (1.00, 1.10, 0.95), 2: (1.01, 1.02, 1.00), 3: (0.98, 1.03, 0.97)}
    decision = decide(Scripted(CLOSE, again), [1, 2, 3])
    assert (decision.winner["a"], {config["a"] for config in decision.ties}) == (3, {1, 2})


def test_an_interval_that_touches_the_best_one_is_a_finalists_without_any_allowance(monkeypatch):
    monkeypatch.setattr(winners, "DRIFT", 0.0)
    monkeypatch.setattr(winners, "RESOLUTION", 0.0)
    measure = Scripted({1: (0.9, 0.8, 1.0), 2: (1.2, 1.0, 1.3)}, dict.fromkeys((1, 2), (1.0, 1.0, 1.0)))
    assert decide(measure, [1, 2]).overlapping == 2


@pytest.mark.parametrize(("held", "expected"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_of_equals_the_incumbent_stays_and_else_the_first_wins(held, expected):
    decision = decide(Exact(lambda c, p: 1.0), [1, 2, 3], held)
    assert decision.winner["a"] == expected
    assert {config["a"] for config in decision.ties} == {1, 2, 3} - {expected}
    assert decision.incumbent_kept == (held != 0)


@pytest.mark.parametrize("held", [1, 2])
def test_rounding_of_logarithms_does_not_decide(held):
    """1 x 10 and 2 x 5 are equal; their sums of logarithms differ in the last place."""
    times = {(1, 1): 1.0, (1, 2): 10.0, (2, 1): 2.0, (2, 2): 5.0, (3, 1): 1.0, (4, 2): 1.0}
    assert winner(times, held=held) == held


def test_an_incumbent_that_misses_a_size_is_not_measured_again():
    times = {(1, 1): 1.0, (2, 1): 1.0, (2, 2): 1.0, (3, 1): 1.0, (3, 2): 1.0}
    measure = Exact(lambda c, p: times.get((c.integer("a"), p.sizes[0])))
    decision = decide(measure, [1, 2, 3], held=1, on=(1, 2))
    assert [config["a"] for config in measure.confirms[0][0]] == [2, 3]
    assert (decision.winner["a"], decision.incumbent) == (2, None)


def test_few_finalists_and_the_incumbent_are_measured_again():
    measure = Exact(lambda c, p: 1.0)
    decision = decide(measure, list(range(1, 11)), held=9)
    assert [config["a"] for config in measure.confirms[0][0]] == [1, 2, 3, 4, 9]
    assert decision.overlapping == 10


@dataclass
class Scripted:
    """First times with intervals, and paired samples, by the value of `a`."""

    first: dict[int, tuple[float, float, float]]
    again: dict[int, tuple[float, ...]]
    confirmed: list[list[int]] = field(default_factory=list)
    fails: object = None

    def screen_cells(self, groups, racing):
        return TimeTable({(c, p): Estimate(*self.first[c.integer("a")], 9) for group in groups for c, p in group})

    def announce(self, confirmations):
        """What will be asked for is measured when it is asked for."""

    def confirm(self, configs, problems):
        self.confirmed.append([c.integer("a") for c in configs])
        known = {c: self.again.get(c.integer("a"), ()) for c in configs}
        ran = {(c, p): samples for c, samples in known.items() if samples for p in problems}
        return TimeTable(
            paired={cell: ran[cell] for cell in ran if (cell[0].integer("a"), cell[1].sizes) != self.fails}
        )


CLOSE = {1: (1.0, 0.9, 1.1), 2: (1.01, 0.9, 1.1), 3: (1.02, 0.9, 1.1), 4: (2.0, 1.9, 2.1)}


def test_only_what_overlaps_the_best_is_a_finalist():
    measure = Scripted(CLOSE, dict.fromkeys(CLOSE, (1.0, 1.0, 1.0)))
    decide(measure, [1, 2, 3, 4])
    assert measure.confirmed == [[1, 2, 3]]


def test_the_second_measurement_decides_not_the_first():
    again = {1: (1.00, 1.10, 1.20), 2: (0.90, 0.99, 1.09), 3: (0.95, 1.05, 1.14)}
    assert decide(Scripted(CLOSE, again), [1, 2, 3], held=1).winner["a"] == 2


def test_samples_are_compared_block_by_block():
    """The machine drifts by a factor of three; in every block the challenger is 2 % faster."""
    drift = (1.0, 1.7, 3.0, 2.2, 1.2)
    again = {1: drift, 2: tuple(x * y for x, y in zip(drift, (0.98, 0.981, 0.979, 0.98, 0.98), strict=True))}
    assert decide(Scripted(CLOSE, again), [1, 2], held=1).winner["a"] == 2


def test_a_challenger_that_is_faster_on_average_but_not_beyond_doubt_ties_with_the_incumbent():
    again = {1: (1.0, 1.0, 1.0, 1.0), 2: (0.7, 1.1, 0.8, 1.2)}
    decision = decide(Scripted(CLOSE, again), [1, 2], held=1)
    assert (decision.winner["a"], [c["a"] for c in decision.ties]) == (1, [2])


def test_a_challenger_that_only_ties_with_the_fastest_must_itself_beat_the_incumbent():
    """1 cannot be told from 3, which beats the incumbent 2; but 1 cannot be told from 2 either."""
    again = {
        1: (0.80, 1.15, 0.85, 1.10, 0.95),
        2: (1.00, 1.00, 1.00, 1.00, 1.00),
        3: (0.95, 0.96, 0.95, 0.94, 0.95),
    }
    decision = decide(Scripted(CLOSE, again), [1, 2, 3], held=2)
    assert (decision.winner["a"], [c["a"] for c in decision.ties]) == (3, [1])


def test_one_block_proves_nothing():
    assert decide(Scripted(CLOSE, {1: (1.0,), 2: (0.5,)}), [1, 2], held=1).winner["a"] == 1


def test_a_finalist_that_fails_the_second_time_cannot_win():
    again = {2: (1.0, 1.0, 1.0), 3: (2.0, 2.0, 2.0)}
    assert decide(Scripted(CLOSE, again), [1, 2, 3], held=1).winner["a"] == 2


def test_a_finalist_that_fails_on_one_of_two_sizes_the_second_time_cannot_win():
    """2 would win, and does where it runs."""
    again, sizes = {1: (1.0, 1.0, 1.0), 2: (0.5, 0.5, 0.5)}, []
    assert decide(Scripted(CLOSE, again), [1, 2], held=1, on=(1, 2)).winner["a"] == 2
    measure = Scripted(CLOSE, again)
    measure.confirm = lambda configs, problems: sizes.extend(problems) or Scripted.confirm(measure, configs, problems)
    decide(measure, [1, 2], held=1, on=(1, 2))
    for problem in sizes:
        assert decide(Scripted(CLOSE, again, fails=(2, problem.sizes)), [1, 2], held=1, on=(1, 2)).winner["a"] == 1


@pytest.mark.parametrize(("values", "held", "expected"), [([1, 2, 3], 2, 2), ([3, 2, 1], 0, 1)])
def test_where_all_finalists_fail_the_second_time_the_incumbent_stays_or_the_first_times_decide(values, held, expected):
    decision = decide(Scripted(CLOSE, {}), values, held)
    assert decision.winner["a"] == expected
    assert [config["a"] for config in decision.ties] == [value for value in values if value != expected]


def test_the_only_finalist_that_runs_the_second_time_wins_without_a_tie():
    decision = decide(Scripted(CLOSE, {2: (1.0, 1.0, 1.0)}), [1, 2, 3], held=1)
    assert (decision.winner["a"], decision.ties) == (2, ())


def test_the_more_finalists_there_are_the_clearer_a_challenger_must_be_to_replace_the_incumbent():
    """By six blocks the challenger is faster at 96.6 % confidence. One comparison needs 95 %, each of two 97.5 %."""
    challenger = tuple(math.exp(-0.1 + sign * 0.0771) for sign in (1, -1) * 3)
    again = {1: (1.0,) * 6, 2: challenger, 3: (2.0,) * 6}
    assert decide(Scripted(CLOSE, again), [1, 2], held=1).winner["a"] == 2
    assert decide(Scripted(CLOSE, again), [1, 2, 3], held=1).winner["a"] == 1


def test_costs_that_are_not_of_the_same_blocks_are_not_compared():
    with pytest.raises(ValueError, match="shorter"):
        faster([1.0, 1.0, 1.0], [2.0, 2.0], 0.95)


def test_only_blocks_that_every_finalist_has_are_compared():
    """In its last two blocks, which no other has, the incumbent would be far ahead."""
    again = {1: (1.0, 1.0, 1.0, 0.1, 0.1), 2: (0.90, 0.91, 0.90)}
    assert decide(Scripted(CLOSE, again), [1, 2], held=1).winner["a"] == 2


# Doubt, by simulation


def replaced(seconds, values, steps, seed, on=(1,)):
    """How many of so many contests the incumbent 1 loses. A step of a run decides by the same function."""
    measure, problems = Noisy(seconds, np.random.default_rng(seed)), sizes(*on)
    configs = [Configuration({"a": value}) for value in values]
    cells = [[(config, problem) for config in configs for problem in problems]]

    def lost():
        rows = measure.screen_cells(cells, racing=False).rows()
        contest = winners.Contest(configs, problems, rows, Objective.GEOMEAN, FLOPS.work, Configuration({"a": 1}))
        return not winners.choose(contest, measure.confirm).incumbent_kept

    return sum(lost() for _ in range(steps))


@pytest.mark.parametrize(
    ("values", "on"), [((1, 2), (1,)), ((2, 1), (1, 2, 3)), ((2, 3, 1, 4, 5), (1,)), ((1, 2, 3, 4, 5, 6, 7, 8), (1, 2))]
)
def test_an_incumbent_among_equals_is_rarely_replaced_however_many_challenge_it(values, on):
    """A 95 % interval lies below zero by chance in 2.5 %, and first times that are clear by chance add a little. The
    best of several equals would be taken in 7 % if each had an interval to itself."""
    steps = 800
    count = replaced(lambda c, p: 1e-3 * p.sizes[0], values, steps, seed=7, on=on)
    assert stats.binomtest(count, steps, 0.035, alternative="greater").pvalue > 0.001, f"{count} of {steps}"


def test_the_false_alarm_rate_is_that_of_the_interval_and_not_nought():
    """A rule that always keeps the incumbent would pass the test above."""
    count = replaced(lambda c, p: 1e-3, (1, 2), 1500, seed=3)
    assert stats.binomtest(count, 1500, 0.005, alternative="less").pvalue > 0.001, f"{count} of 1500"
    assert count > 0


def test_a_challenger_that_is_truly_faster_wins_nearly_always():
    """4 % against noise of 2 %, under drift of 5 % that only pairing removes."""
    assert replaced(lambda c, p: 0.96 if c["a"] == 2 else 1.0, (1, 2, 3), 200, seed=11) >= 190


def test_two_pairs_have_an_interval_and_a_single_pair_has_none():
    low, high = paired_interval([0.1, 0.3], 0.5)
    # With one degree of freedom the quartile is 1, and the standard error of these two is 0.1.
    assert (low, high) == (pytest.approx(0.1), pytest.approx(0.3))
    assert paired_interval([0.1], 0.5) == (-math.inf, math.inf)


def test_the_paired_interval_is_students():
    differences = np.random.default_rng(5).normal(0.3, 1.0, 12)
    expected = stats.ttest_1samp(differences, 0.0).confidence_interval(0.99)
    assert paired_interval(list(differences), 0.99) == pytest.approx((expected.low, expected.high))


def test_the_time_of_a_winner_is_kept_by_problem():
    decision = decide(Exact(lambda c, p: c.integer("a") * p.sizes[0] * 1.0), [2, 3], on=(1, 5))
    assert decision.times == {size(1): 2.0, size(5): 10.0}
    assert tuple(decision.times) == sizes(1, 5)
