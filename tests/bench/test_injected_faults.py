"""Processes are killed at every named point of a run, and the measurements are those of an undisturbed one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench_jobs import CPU, GPU, QUICK, batch, job
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


def run_parent(code, fault):
    command = [sys.executable, "-c", f"from tunesmith.bench.injected_faults import pass_point\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, VARIABLE: fault})


def test_the_action_happens_at_the_nth_passing_of_its_point_in_its_role_only():
    code = "for i in range(3):\n    print(i, flush=True)\n    pass_point('writing')\n    pass_point('committing')"
    assert run_parent(code, "committing:parent:2:kill").stdout.split() == ["0", "1"]
    assert run_parent(code, "committing:parent:2:kill").returncode == -9
    assert run_parent(code, "committing:worker:2:kill").stdout.split() == ["0", "1", "2"]
    assert run_parent(code, "timing:parent:1:kill").returncode == 0
    assert "FaultError: writing" in run_parent(code, "writing:parent:1:raise").stderr


def test_without_the_variable_nothing_happens_and_an_unknown_point_is_refused(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    for point in POINTS:
        pass_point(point)
    with pytest.raises(ValueError, match="no point 'comiting'"):
        pass_point("comiting")
