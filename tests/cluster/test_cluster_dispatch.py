"""What the command makes of a device's results, without a cluster."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench_jobs import job
from tunesmith.cluster import dispatch
from tunesmith.cluster.devices import ClusterDevice, Purpose, SentPortion, WorkItem
from tunesmith.cluster.dispatch import LOSSES, Dispatcher
from tunesmith.cluster.wire import plain_measurement
from tunesmith.records import Measurement, Outcome

KILLED = Measurement(Outcome.CRASH, "SIGKILL")
CRASHED = Measurement(Outcome.CRASH, "SIGSEGV")
OK = Measurement(Outcome.OK)


@pytest.fixture
def sent():
    """A function that takes a device's measurements of an item in a new portion, and returns what is passed on and what
    still waits."""
    dispatcher = Dispatcher.__new__(Dispatcher)
    dispatcher._losses, dispatcher._admission = {}, None
    item = WorkItem("a job", job(16).problem, job(16))

    def heard(*measurements, purpose=Purpose.WORK, others=()):
        items = {item.name: item} | {name: WorkItem(name, item.problem, job(16, LoopUnroll=4)) for name in others}
        portion = SentPortion(0, items, SimpleNamespace(), purpose)
        found = []
        for measurement in measurements:
            plain = [plain_measurement(measurement)]
            found += dispatcher._result(ClusterDevice("x", "there"), portion, item.name, plain)
        return [(each.measurements[0].outcome, each.second) for each in found], list(portion.waiting)

    return heard


def test_a_killed_item_goes_behind_those_that_wait_with_it(sent):
    """So the device's next loss is not blamed on it."""
    assert sent(KILLED, others=("b", "c")) == ([], ["b", "c", "a job"])


def test_what_was_measured_when_its_process_was_killed_waits_to_be_measured_again(sent):
    for _ in range(LOSSES - 1):
        assert sent(KILLED) == ([], ["a job"])
    assert sent(KILLED) == ([(Outcome.CRASH, False)], []), "in the end it counts as not measured"


def test_a_result_after_a_kill_counts(sent):
    assert sent(KILLED) == ([], ["a job"])
    assert sent(OK) == ([(Outcome.OK, False)], [])


def test_a_crash_of_its_own_is_a_result_at_once(sent):
    assert sent(CRASHED) == ([(Outcome.CRASH, False)], [])


def test_a_second_result_is_passed_on_as_one(sent):
    assert sent(OK, CRASHED) == ([(Outcome.OK, False), (Outcome.CRASH, True)], [])


def test_kills_in_visits_are_none_of_the_steps(sent):
    for _ in range(LOSSES):
        assert sent(KILLED, purpose=Purpose.VISIT) == ([], ["a job"])
    assert sent(KILLED) == ([], ["a job"])


def test_a_visit_waits_too_and_an_admission_is_decided_at_once(sent):
    assert sent(KILLED, purpose=Purpose.VISIT) == ([], ["a job"])
    assert sent(KILLED, purpose=Purpose.ADMISSION) == ([], [])


def test_a_problem_stays_with_its_device_within_a_step_of_its_own_type(monkeypatch):
    """Each problem has a step, since types that go together need not be in the same one."""
    begun, (first, second) = [], (job(16).problem, job(32).problem)
    monkeypatch.setattr(
        dispatch.Assignment, "of", lambda groups, homes, names: begun.append(names) or SimpleNamespace(left=0)
    )
    dispatcher = Dispatcher.__new__(Dispatcher)
    dispatcher._homes, dispatcher._begun, dispatcher.fleet = {}, {}, []
    for steps in ({first: "one", second: "a"}, {first: "one", second: "b"}, {second: "b"}, {first: "one"}, {first: ""}):
        list(dispatcher.carry_out([], None, steps=steps))
    assert begun == [set(), {first}, {second}, {first}, set()]
