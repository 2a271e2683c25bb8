"""A worker that a run did not need waits for the next run of the program, if its bench's server is kept for that."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from bench_jobs import CPU, GPU, QUICK, batch, job
from processes import processes
from tunesmith.bench import Bench, Spawner, keep_server
from tunesmith.bench.processes import process, standby
from tunesmith.bench.processes.messages import PrepareRequest
from tunesmith.bench.processes.standby import Standbys, standbys

POLICY = replace(QUICK, timeout_seconds=20.0, compile_timeout_seconds=20.0)


@pytest.fixture(autouse=True)
def _no_servers_of_others(own_servers):
    """No other test's server or worker is found, and none of these tests' are left."""


@pytest.fixture
def keeping():
    keep_server((), keeps_workers=True)
    server = process._kept_server()
    yield
    server.close()
    standbys().take(GPU, POLICY)


def lives(pid):
    return any(living.pid == pid for living in processes())


def gone(pid, seconds=20.0):
    deadline = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not lives(pid)


def run(folder, policy=POLICY, target=GPU):
    """One run: the worker that measured, and the worker that waits afterwards."""
    with Bench(target, policy, folder) as bench:
        ((_, measurement),) = bench.run(batch([job(fault="none")]))
        assert measurement.ok, measurement
        used = bench._tools.workers.current().pid
    waiting = standbys()._waiting
    return used, waiting.worker.pid if waiting else None


def test_the_next_run_takes_the_worker_that_waits_and_the_used_one_ends(keeping, tmp_path):
    first, waiting = run(tmp_path / "first")
    assert waiting not in (None, first)
    second, next_waiting = run(tmp_path / "second")
    assert second == waiting
    assert gone(first)
    assert gone(second)
    assert lives(next_waiting)


def test_no_worker_waits_on_the_hosts_cpu_or_without_a_server_that_is_kept_for_it(tmp_path):
    used, waiting = run(tmp_path)
    assert waiting is None
    assert not lives(used)
    keep_server((), keeps_workers=True)
    assert run(tmp_path, target=CPU)[1] is None
    process._kept_server().close()


@pytest.mark.parametrize("change", ["policy", "variable", "death"])
def test_a_worker_that_does_not_fit_or_died_is_not_taken(change, keeping, tmp_path, monkeypatch):
    _, waiting = run(tmp_path)
    policy = replace(POLICY, seed=POLICY.seed + 1) if change == "policy" else POLICY
    if change == "variable":
        monkeypatch.setenv("TUNESMITH_TEST_VALUE", "changed")
    if change == "death":
        os.kill(waiting, signal.SIGKILL)
        assert gone(waiting)
    assert run(tmp_path, policy)[0] != waiting
    assert gone(waiting)


def test_a_worker_that_prepared_a_problem_does_not_wait(keeping, tmp_path):
    """It holds arrays of its run, and the next run may have others under the same keys."""
    with Bench(GPU, POLICY, tmp_path) as bench:
        bench.prepare([job(fault="none")])
        prepared = bench._tools.workers._standby.pid
    assert standbys()._waiting is None
    assert gone(prepared)


def test_the_next_run_measures_when_the_processes_of_the_last_have_ended(keeping, tmp_path, monkeypatch):
    ended = []
    with Spawner({}) as spawner:
        spawner.end_all([lambda: ended.append(time.sleep(0.3))])
        assert ended == [], "end_all does not wait"
        spawner.await_ends()
        assert ended == [None]
    awaited = []
    monkeypatch.setattr(Spawner, "await_ends", lambda spawner: awaited.append(1))
    run(tmp_path)
    assert awaited


def test_a_worker_does_not_wait_for_long(keeping, tmp_path, monkeypatch):
    monkeypatch.setattr(standby, "IDLE_SECONDS", 0.1)
    _, waiting = run(tmp_path)
    if waiting is not None:  # It may have ended already.
        assert gone(waiting)
    assert standbys().take(GPU, POLICY) is None


def test_a_fork_of_the_program_has_no_waiting_worker(keeping, tmp_path, monkeypatch):
    _, waiting = run(tmp_path)
    mine = standbys()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: mine._owner + 1)
        assert standbys() is not mine
        assert standbys().take(GPU, POLICY) is None
    assert lives(waiting)
    monkeypatch.setattr(standby, "_STANDBYS", mine)
    taken = standbys().take(GPU, POLICY)
    assert taken.pid == waiting
    taken.end()


def test_a_second_worker_that_is_kept_ends_the_first():
    class Ended:
        may_be_taken, variables = True, dict(os.environ)

        def __init__(self):
            self.ends = 0

        def end(self):
            self.ends += 1

    kept, first, second = Standbys(), Ended(), Ended()
    kept.keep(first, GPU, POLICY)
    kept.keep(second, GPU, POLICY)
    assert (first.ends, second.ends) == (1, 0)
    assert kept.take(GPU, POLICY) is second
    assert kept.take(GPU, POLICY) is None


def test_a_gpus_first_problem_is_prepared_while_its_candidates_are_compiled(tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "tunesmith.bench.processes.worker_handle.Worker.prepare", lambda worker, request: sent.append(request)
    )
    with Bench(GPU, POLICY, tmp_path) as bench:
        only = job(fault="none")
        bench.prepare([only])
        assert sent == [PrepareRequest(sent[0].problems)]
        assert only.problem in sent[0].problems
        assert [measurement.ok for _, measurement in bench.run(batch([only]))] == [True]
        bench.prepare([job(fault="none", VectorWidth=2)])
        assert len(sent) == 1, "a worker that was asked already gets no such request"
