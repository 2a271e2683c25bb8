"""Processes are killed at every named point of a run, and the measurements are those of an undisturbed one."""

from __future__ import annotations

import os

import pytest

from bench_jobs import CPU, GPU, QUICK, batch, job
from forked import run_forked
from forked_programs import pass_two_points
from tunesmith.bench import Bench, WorkerLost
from tunesmith.bench.injected_faults import POINTS, VARIABLE, pass_point

JOBS = [{"LoopUnroll": 4}, {"LoopUnroll": 8}, {"fault": "wrong value"}, {"LoopUnroll": 16}, {"VectorWidth": 2}]


def outcomes(target, cache, observe=lambda event: None):
    with Bench(target, QUICK, cache, observe) as bench:
        jobs = [job(**parameters) for parameters in JOBS]
        return {job.key: (found.outcome, found.samples) for job, found in bench.run(batch(jobs))}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return {target: outcomes(target, tmp_path_factory.mktemp("cache")) for target in (GPU, CPU)}


@pytest.mark.parametrize(("action", "count"), [("kill", 1), ("kill", 3), ("segfault", 2)])
@pytest.mark.parametrize("point", ["compiling", "probing", "verifying", "timing", "reporting"])
def test_a_process_killed_at_any_point_changes_no_measurement(point, action, count, undisturbed, tmp_path, monkeypatch):
    token, target = tmp_path / "token", CPU if point == "probing" else GPU
    token.touch()
    role = "compiler" if point in ("compiling", "probing") else "worker"
    monkeypatch.setenv(VARIABLE, f"{point}:{role}:{count}:{action}:{token}")
    lost = []
    found = outcomes(target, tmp_path, lambda event: lost.append(event) if isinstance(event, WorkerLost) else None)
    assert not token.exists(), "the fault did happen"
    assert bool(lost) == (role == "worker")
    assert found == undisturbed[target]


@pytest.mark.parametrize("point", ["compiling", "verifying"])
def test_a_process_that_hangs_after_others_were_served_changes_no_measurement(
    point, undisturbed, tmp_path, monkeypatch
):
    token = tmp_path / "token"
    token.touch()
    role = "compiler" if point == "compiling" else "worker"
    monkeypatch.setenv(VARIABLE, f"{point}:{role}:3:hang:{token}")
    assert outcomes(GPU, tmp_path) == undisturbed[GPU]
    assert not token.exists()


def parent(fault, times=3):
    """A process that passes two points so many times. It has no other role, so it is the parent."""
    return run_forked(pass_two_points, times, env={**os.environ, VARIABLE: fault})


def test_the_action_happens_at_the_nth_passing_of_its_point_in_its_role_only():
    killed = parent("committing:parent:2:kill")
    assert (killed.stdout.split(), killed.returncode) == (["0", "1"], -9)
    other_role = parent("committing:worker:2:kill")
    assert (other_role.stdout.split(), other_role.returncode) == (["0", "1", "2"], 0)
    assert parent("timing:parent:1:kill").returncode == 0, "no such point is passed"
    raised = parent("writing:parent:1:raise")
    assert "FaultError: writing" in raised.stderr
    assert raised.stdout.split() == ["0"]


def test_without_the_variable_nothing_happens_and_an_unknown_point_is_refused(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    for point in POINTS:
        pass_point(point)
    with pytest.raises(ValueError, match="no point 'comiting'"):
        pass_point("comiting")
