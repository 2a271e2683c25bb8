"""The smallest set of solutions: first few, then fast."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tunesmith.logic.cover import cover


def kept(tolerance, *columns):
    """What is kept of these columns of times, beside as many solutions that run nowhere."""
    nowhere = [[math.inf] * len(columns[0])] * len(columns)
    return cover(np.array([*columns, *nowhere]).T, tolerance)


def test_one_slow_solution_that_is_good_enough_everywhere_stands_for_two_fast_ones():
    """The first takes 2.9 times as long everywhere. Each of the others is the fastest at all sizes but one, where it
    takes 3.1 times as long."""
    slow = [2.9] * 10
    assert kept(2.0, slow, [1.0] * 9 + [3.1], [3.1] + [1.0] * 9) == [0]
    assert kept(1.8, slow, [1.0] * 9 + [3.1], [3.1] + [1.0] * 9) == [1, 2]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("order", [1, -1])
def test_of_as_few_solutions_the_faster_are_kept(order, scale):
    columns = [[1.0 * scale, 1.0 * scale, 1.5], [1.5 * scale, 1.2 * scale, 1.0]][::order]
    fast = columns.index([1.0 * scale, 1.0 * scale, 1.5])
    assert kept(0.5, *columns) == [fast]
    assert kept(0.49, *columns) == [0, 1]


def test_two_of_three_are_enough_where_each_is_good_at_two_of_three_sizes():
    assert kept(0.5, [1.0, 1.1, 9.0], [9.0, 1.0, 1.0], [1.2, 9.0, 1.0]) == [0, 1]


@pytest.mark.parametrize("percent", [1, 10, 50, 70, 110])
def test_what_takes_just_so_much_longer_is_good_enough(percent):
    longer = (100 + percent) / 100
    assert kept(percent / 100, [1.0, longer], [longer * 1.001, 1.0]) == [0]
    assert kept(percent / 100 - 0.001, [1.0, longer], [longer, 1.0]) == [0, 1]


def test_a_loss_that_is_very_large_counts_as_a_factor_of_e():
    """The mean of the logarithms is 0.33 for the first, where 100 counts as e, and 0.4 for the second."""
    columns = [[100.0, 1.0, 1.0], [math.exp(0.4)] * 3]
    assert kept(200.0, [1.0, 4.0, 4.0], *columns) == [1]


def test_out_of_time_every_sizes_fastest_is_kept(monkeypatch):
    """The solver may find no set before its time is over."""

    class OutOfTime:
        x = None

    monkeypatch.setattr("scipy.optimize.milp", lambda *call, **options: OutOfTime)
    assert kept(0.5, [1.0, 2.0, 1.0], [1.1, 1.1, 1.1], [3.0, 1.0, 3.0]) == [0, 2]
