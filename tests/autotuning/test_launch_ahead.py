"""What Triton needs for a launch is made while the call is measured: for the first configuration that is compiled, and
for the one that leads."""

from __future__ import annotations

import threading

import pytest

import library_fakes
from tunesmith.autotuning.launch_ahead import LaunchAhead
from tunesmith.autotuning.measured_call import ScreeningObserver
from tunesmith.records import Estimate, Measurement, Outcome, Problem
from tunesmith.session.frame import events

SECONDS = 20.0


class Making:
    """Compiles when it may, and remembers what was asked, in which thread."""

    def __init__(self, error=None, may_end=True):
        self.asked, self.made, self.threads, self.error = [], 0, set(), error
        self.may_end = threading.Event()
        if may_end:
            self.may_end.set()

    def __call__(self, position, makes_launcher):
        self.asked.append((position, makes_launcher))
        self.threads.add(threading.current_thread())
        assert self.may_end.wait(SECONDS)
        if self.error:
            raise self.error
        self.made += 1


def test_the_first_configuration_that_is_compiled_gets_a_launcher_in_a_thread():
    making = Making(may_end=False)
    ahead = LaunchAhead(making)
    for position in (3, 0, 1):
        ahead.begin(position)
    assert making.made == 0, "begin returns while Triton compiles"
    making.may_end.set()
    ahead.wait(0)
    assert (making.asked, making.made) == ([(3, True)], 1)
    assert threading.current_thread() not in making.threads


def test_the_leading_configuration_is_compiled_in_another_thread_and_once():
    making = Making(may_end=False)
    ahead = LaunchAhead(making)
    ahead.begin(3)
    for position in (5, 5, 3):
        ahead.expect(position)
    making.may_end.set()
    ahead.wait(5)
    assert (sorted(making.asked), making.made) == ([(3, True), (5, False)], 2)
    assert len(making.threads) == 2


def test_another_winner_does_not_wait_for_the_one_that_led():
    may_end = threading.Event()

    def make(position, makes_launcher):
        assert position == 3 or may_end.wait(SECONDS)

    ahead = LaunchAhead(make)
    ahead.begin(3)
    ahead.expect(5)
    ahead.wait(7)
    assert not may_end.is_set()
    may_end.set()
    ahead.wait(5)


def test_what_all_need_is_made_at_once_and_before_a_configuration_is_compiled():
    may_end, done = threading.Event(), []

    def prepare():
        assert may_end.wait(SECONDS)
        done.append("prepared")

    ahead = LaunchAhead(lambda position, makes_launcher: done.append(position), prepare)
    ahead.begin_to_prepare()
    ahead.begin(3)
    assert done == []
    may_end.set()
    ahead.wait(3)
    assert done == ["prepared", 3]


@pytest.mark.parametrize("error", [RuntimeError("no compiler"), AttributeError("another Triton")])
def test_a_failure_is_left_to_the_launch(error):
    making = Making(error)
    ahead = LaunchAhead(making)
    ahead.begin(0)
    ahead.wait(0)
    assert (making.asked, making.made) == ([(0, True)], 0)


def test_without_a_compiled_configuration_there_is_nothing_to_wait_for():
    making = Making()
    LaunchAhead(making).wait(0)
    assert making.asked == []


def test_what_leads_is_told_when_the_finalists_are_compared_and_what_is_compiled_at_once():
    """Of three solutions, the last to be measured fails, and the second is the fastest."""
    solutions = [library_fakes.solution(library_fakes.TYPES[0], TILE=tile) for tile in (1, 2, 3)]
    seconds = [2e-3, 1e-3, None]
    compiled, leading, passed_on = [], [], []
    screening = ScreeningObserver(passed_on.append, compiled.append, leading.append)
    screening(events.BatchBegan("screening", 5, 2))
    for solution, time in zip(solutions, seconds, strict=True):
        screening(events.Dispatched("key", solution))
        estimate = time and Estimate(time, time, time, 7)
        outcome = Outcome.OK if time else Outcome.WRONG_RESULT
        measurement = Measurement(outcome, estimate=estimate)
        screening(events.CellMeasured(solution, Problem(solution.type, (64, 64, 64)), measurement, None))
    assert (compiled, leading) == (solutions, [])
    screening(events.BatchBegan("finalists", 2, 0))
    assert leading == [solutions[1]]
    assert screening.measured == 3
    assert len(passed_on) == 8
