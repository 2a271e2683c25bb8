"""The cost of a candidate by each objective, as a number, and when one candidate is faster than another."""

from __future__ import annotations

import math

import pytest

from protocol_fakes import size, sizes
from tunesmith.protocol import Objective
from tunesmith.protocol.intervals import RESOLUTION, faster, paired_interval
from tunesmith.protocol.objectives import cost_function_for

SHORT, LONG, LONGER = sizes(1, 10, 100)
FIRST = {SHORT: 1.0, LONG: 16.0, LONGER: 120.0}
SECOND = {SHORT: 2.0, LONG: 10.0, LONGER: 150.0}


def cost(objective, times, weights=None, competitors=(FIRST, SECOND)):
    function = cost_function_for(objective, competitors, lambda problem: float(problem.sizes[0]), weights or {})
    return function.cost(times)


@pytest.mark.parametrize(
    ("objective", "first", "second"),
    [
        (Objective.GEOMEAN, math.log(1.6) / 3, (math.log(2.0) + math.log(1.25)) / 3),
        (Objective.MAX, math.log(1.0), math.log(1.0)),  # 1 second by 1, 10 seconds by 10
        (Objective.TOTAL_TIME, math.log(137.0), math.log(162.0)),
        (Objective.WORST, math.log(1.6), math.log(2.0)),
    ],
)
def test_a_cost_is_the_logarithm_that_its_objective_defines(objective, first, second):
    assert cost(objective, FIRST) == pytest.approx(first)
    assert cost(objective, SECOND) == pytest.approx(second)


@pytest.mark.parametrize("objective", list(Objective))
def test_what_ran_nowhere_costs_more_than_anything(objective):
    assert cost(objective, {}) == math.inf


def test_a_problem_without_a_weight_weighs_one():
    weights = {LONG: 3.0}
    assert cost(Objective.TOTAL_TIME, FIRST, weights) == pytest.approx(math.log(1.0 + 3.0 * 16.0 + 120.0))
    assert cost(Objective.GEOMEAN, FIRST, weights) == pytest.approx(3.0 * math.log(1.6) / (1 + 3 + 1))
    assert cost(Objective.GEOMEAN, SECOND, weights) == pytest.approx((math.log(2.0) + math.log(1.25)) / (1 + 3 + 1))


@pytest.mark.parametrize("objective", [Objective.MAX, Objective.WORST])
def test_an_objective_that_one_cell_decides_uses_no_weights(objective):
    assert cost(objective, SECOND, {SHORT: 9.0, LONG: 0.5}) == cost(objective, SECOND)


def test_the_best_time_of_a_problem_is_the_least_of_all_who_ran_it():
    function = cost_function_for(Objective.WORST, [FIRST, {LONG: 4.0}, SECOND], lambda problem: 1.0, {})
    assert function.best == {SHORT: 1.0, LONG: 4.0, LONGER: 120.0}
    assert function.cost({LONG: 4.0}) == 0.0
    assert function.cost(FIRST) == pytest.approx(math.log(4.0))


def test_work_is_asked_for_only_where_it_decides():
    def works_of(objective):
        asked = []
        cost_function_for(objective, [{size(2): 1.0}], lambda problem: asked.append(problem) or 1.0, {})
        return asked

    assert {objective: works_of(objective) for objective in Objective if works_of(objective)} == {
        Objective.MAX: [size(2)]
    }


@pytest.mark.parametrize(("ahead", "is_faster"), [(0.0, False), (RESOLUTION, False), (1.001 * RESOLUTION, True)])
def test_who_is_ahead_by_no_more_than_rounding_is_not_faster(ahead, is_faster):
    """The differences have no scatter, so that the interval is a point."""
    assert faster([-ahead] * 4, [0.0] * 4, 0.95) is is_faster
    assert not faster([ahead] * 4, [0.0] * 4, 0.95)
    assert faster([1.0 - ahead] * 4, [1.5] * 4, 0.95)
    assert not faster([-1.5] * 4, [-1.5 - ahead] * 4, 0.95)


@pytest.mark.parametrize(("count", "quantile"), [(2, 12.7062), (3, 4.3027), (5, 2.7764)])
def test_an_interval_is_as_wide_as_students_quantile_says(count, quantile):
    differences = [0.1 * number for number in range(count)]
    mean = sum(differences) / count
    deviation = math.sqrt(sum((x - mean) ** 2 for x in differences) / (count - 1))
    half = quantile * deviation / math.sqrt(count)
    assert paired_interval(differences, 0.95) == pytest.approx((mean - half, mean + half), abs=1e-4 * half)
    assert paired_interval(differences[:1], 0.95) == (-math.inf, math.inf)
