"""The collector is paused while modules are imported, and only then."""

from __future__ import annotations

import gc
import os
import threading

from tunesmith import _collector
from tunesmith._collector import collector_paused


def test_pauses_end_with_the_last_and_leave_a_stopped_collector_alone():
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_child_that_is_forked_during_another_threads_pause_collects():
    paused, go_on = threading.Event(), threading.Event()

    def pause():
        with collector_paused():
            paused.set()
            go_on.wait()

    thread = threading.Thread(target=pause)
    thread.start()
    paused.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() and _collector._pauses == 0 else 1)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gc.isenabled()


def test_a_child_that_stops_the_collector_after_a_fork_in_a_pause_keeps_it_stopped():
    with collector_paused():
        child = os.fork()
        if child == 0:
            gc.disable()
    if child == 0:
        os._exit(1 if gc.isenabled() else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gc.isenabled()
