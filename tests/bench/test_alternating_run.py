"""Runs on the host's own processor: jobs are verified beside compiling, and timed when nothing else runs."""

from __future__ import annotations

import pytest

from bench_jobs import CPU, QUICK, batch, job
from tunesmith.bench import Bench
from tunesmith.bench.alternating_run import FIRST_TASKS
from tunesmith.bench.processes.worker_handle import Worker
from tunesmith.records import Outcome


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a batch on a bench; the results by key, and for each request to a worker whether it verifies, whether it
    times, and whether compilers are at work."""
    ask = Worker.ask
    with Bench(CPU, QUICK, tmp_path) as bench:

        def measured(jobs):
            requests = []

            def observed(self, request):
                requests.append((request.candidate.verify, request.times, bench._tools.compilers.busy))
                ask(self, request)

            monkeypatch.setattr(Worker, "ask", observed)
            return {each.key: measurement for each, measurement in bench.run(batch(jobs))}, requests

        yield measured


def test_each_job_is_verified_once_beside_compiling_and_timed_when_nothing_compiles(run):
    jobs = [job(LoopUnroll=unroll) for unroll in range(1, FIRST_TASKS + 9)]
    found, requests = run(jobs)
    assert found.keys() == {each.key for each in jobs}
    verified, timed = ([request for request in requests if request[1] is times] for times in (False, True))
    assert len(verified) == len(timed) == len(jobs)
    assert all(verify for verify, _, _ in verified)
    assert any(busy for _, _, busy in verified), "it does not wait until all are compiled"
    assert {(verify, busy) for verify, _, busy in timed} == {(False, False)}
    for measurement in found.values():
        assert measurement.ok
        assert measurement.detail.startswith("relative error")
        assert measurement.cost.verify > 0
        assert measurement.cost.timing > 0


def test_a_job_that_was_verified_before_is_only_timed(run):
    jobs = [job(LoopUnroll=unroll) for unroll in (1, 2)]
    run(jobs)
    again, requests = run(jobs)
    assert requests == [(False, True, False)] * 2
    assert all(measurement.ok for measurement in again.values())


def test_what_breaks_while_it_is_verified_is_not_timed(run):
    """A wrong result, a crash, and a hang; and one that only hangs when it is timed."""
    faults = ("wrong value", "segfault", "hang", "hang when timed")
    jobs = [job(), *(job(fault=fault) for fault in faults), job(LoopUnroll=2)]
    found, requests = run(jobs)
    assert [found[each.key].outcome for each in jobs] == [
        Outcome.OK,
        Outcome.WRONG_RESULT,
        Outcome.CRASH,
        Outcome.TIMEOUT,
        Outcome.TIMEOUT,
        Outcome.OK,
    ]
    assert {(verify, times) for verify, times, _ in requests} == {(True, False), (False, True)}
