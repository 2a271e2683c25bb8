"""Triton's launcher of a call is made while the call is measured, for the first configuration that runs."""

from __future__ import annotations

import threading

import pytest

from tunesmith.autotuning.launcher_ahead import LauncherAhead

SECONDS = 20.0


class Compiling:
    """Makes a launcher when it may, and remembers what was asked, in which thread."""

    def __init__(self, error=None):
        self.positions, self.made, self.threads, self.error = [], 0, set(), error
        self.may_end = threading.Event()

    def __call__(self, position):
        self.positions.append(position)
        self.threads.add(threading.current_thread())
        assert self.may_end.wait(SECONDS)
        if self.error:
            raise self.error
        self.made += 1


def test_the_first_configuration_that_runs_is_compiled_in_a_thread():
    compiling = Compiling()
    launcher = LauncherAhead(compiling)
    for position in (3, 0, 1):
        launcher.begin(position)
    assert compiling.made == 0, "begin returns while Triton compiles"
    compiling.may_end.set()
    launcher.wait()
    assert (compiling.positions, compiling.made) == ([3], 1)
    assert threading.current_thread() not in compiling.threads


@pytest.mark.parametrize("error", [RuntimeError("no compiler"), AttributeError("another Triton")])
def test_a_failure_is_left_to_the_launch(error):
    compiling = Compiling(error)
    compiling.may_end.set()
    launcher = LauncherAhead(compiling)
    launcher.begin(0)
    launcher.wait()
    assert (compiling.positions, compiling.made) == ([0], 0)


def test_without_a_good_configuration_there_is_nothing_to_wait_for():
    launcher = LauncherAhead(Compiling())
    launcher.wait()
    assert launcher.make.positions == []
