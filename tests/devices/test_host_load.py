"""The time that other processes use our processors, by the counters of a made-up machine."""

from __future__ import annotations

import os

import pytest

from tunesmith.devices.host_load import HostLoad

TICK = os.sysconf("SC_CLK_TCK")


class Counters:
    """Two processors of ours and one of others. A line counts user, nice, system, idle, waiting, two interrupts,
    stolen, and twice the guests' time, which is in the first two."""

    def __init__(self, folder):
        self.now, self.own, self.file = 0.0, 0.0, folder / "stat"
        self.rows = {number: [0] * 10 for number in range(3)}
        self.write()

    def add(self, number, column, seconds):
        self.rows[number][column] += round(seconds * TICK)
        self.write()

    def write(self):
        lines = [f"cpu{number} {' '.join(map(str, row))}" for number, row in self.rows.items()]
        self.file.write_text("\n".join([f"cpu  {' '.join(['77777'] * 10)}", *lines, "intr 1 2 3"]))

    def load(self):
        return HostLoad(self.file, frozenset({0, 1}), clock=lambda: self.now, own=lambda: self.own)


@pytest.fixture
def machine(tmp_path):
    return Counters(tmp_path)


@pytest.mark.parametrize("column", [0, 1, 2, 5, 6, 7])
def test_every_kind_of_work_on_our_processors_counts(machine, column):
    load = machine.load()
    machine.now = 4.0
    machine.add(0, column, 1.0)
    machine.add(1, column, 2.0)
    assert load.others() == pytest.approx(0.75)


@pytest.mark.parametrize(("number", "column"), [(0, 3), (0, 4), (1, 8), (1, 9), (2, 0)])
def test_idle_time_guests_and_other_processors_do_not_count(machine, number, column):
    """The guests' time is in the first two columns already."""
    load = machine.load()
    machine.now = 4.0
    machine.add(number, column, 3.0)
    assert load.others() == 0.0


def test_what_we_ourselves_use_does_not_count_and_others_never_use_less_than_nothing(machine):
    load = machine.load()
    machine.now, machine.own = 4.0, 2.0
    machine.add(0, 0, 3.0)
    assert load.others() == pytest.approx(0.25)
    machine.own = 3.5
    assert load.others() == 0.0


def test_nothing_is_known_before_time_passes(machine):
    """Whatever was busy before, only the time since the start counts."""
    machine.add(0, 0, 50.0)
    load = machine.load()
    assert load.others() is None
    machine.now = 1.0
    assert load.others() == 0.0
    machine.add(0, 0, 1.0)
    assert load.others() == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", "intr 1 2 3", "cpu0 1 2 x 4"])
def test_what_is_no_list_of_processors_tells_nothing(machine, text):
    load = machine.load()
    machine.now = 1.0
    machine.file.write_text(text)
    assert load.others() is None
    assert machine.load().others() is None


def test_without_a_choice_the_processors_are_those_of_this_process(machine, monkeypatch):
    """The system calls it 0."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5, 7} if process == 0 else {1, 2})
    assert HostLoad(machine.file).processors == {5, 7}
