"""Kill a tuning run anywhere: nothing committed is lost or measured twice, and the same command comes to the same end.

TUNESMITH_KILLS and TUNESMITH_KILLS_OPENCL say how often, on the fake device and on an OpenCL device.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from command_line import invoke_json
from forked import code_of, started
from tunesmith.bench.injected_faults import PASSAGES, POINTS, VARIABLE
from tuning_runs import (
    Key,
    Row,
    document,
    environment,
    execute,
    fake_file,
    orphans,
    results,
    rows,
    steady_or_drifted,
    tunesmith,
)

SEED = 20

ROLES = {
    "compiling": "compiler",
    "probing": "compiler",
    "verifying": "worker",
    "timing": "worker",
    "reporting": "worker",
    "committing": "parent",
    "confirming": "parent",
    "decided": "parent",
    "writing": "parent",
    "closing": "parent",
}
"""The process that passes each point. The process itself is killed there, or its parent at that moment."""

GPU, CPU = "fake:GPU:8", "fake:CPU:8"


@dataclass(frozen=True)
class Kill:
    """One kill of a run: `chance` in [0, 1) picks the passage among those that an undisturbed run makes."""

    number: int
    point: str
    victim: str
    device: str
    chance: float

    @staticmethod
    def draw(number):
        """A kill at each point in turn: first of the process that passes it, then of the process's parent."""
        drawn = random.Random(f"{SEED} {number}")
        point = POINTS[number % len(POINTS)]
        victim = "parent" if number // len(POINTS) % 2 else ROLES[point]
        device = CPU if point == "probing" else drawn.choice([GPU, CPU])
        return Kill(number, point, victim, device, drawn.random())

    def __str__(self):
        return f"{self.number}-{self.point}-{self.victim}-{self.device.replace(':', '')}-{self.chance:.2f}"

    def fault(self, passage, token):
        action = "kill" if self.victim == ROLES[self.point] else "kill-parent"
        return f"{self.point}:{ROLES[self.point]}:{passage}:{action}:{token}"


def kills(variable, default):
    return [Kill.draw(number) for number in range(int(os.environ.get(variable, default)))]


@dataclass(frozen=True)
class Undisturbed:
    """The results of a run that is not killed, and how often its processes pass each point."""

    file: Path
    folder: Path
    rows: dict[Key, Row]
    results: dict[str, str]
    passages: Counter[str]

    @staticmethod
    def run(file, device, folder):
        passage_file = folder / "passages"
        document_of(
            tunesmith(*tune(file, folder, device), "--json", env=environment(**{PASSAGES: passage_file})), device
        )
        passages: Counter[str] = Counter()
        for line in passage_file.read_text().splitlines():
            point, role, _, count = line.split()
            assert role == ROLES[point]
            passages[point] = max(passages[point], int(count))
        return Undisturbed(file, folder, rows(folder), results(folder), passages)


def document_of(done, device):
    """The document that a finished run printed; the anchor may have drifted on a real device only."""
    return document(done) if device.startswith("fake:") else steady_or_drifted(done)


def tune(file, folder, device):
    return ["tune", file, "-o", folder, "--device", device]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    file = fake_file(folder)
    return {device: Undisturbed.run(file, device, folder / str(index)) for index, device in enumerate((GPU, CPU))}


def measured(found):
    """Outcome and time of every cell but the anchor, which a resumed run visits once more."""
    return {key: (row["outcome"], row["seconds"]) for key, row in found.items() if not key[1].startswith("anchor")}


def survived(kill, passage, file, folder, token):
    """Run until the kill, if it happens. A run whose parent lives goes on to its end and measures nothing twice."""
    token.touch()
    env = environment(**{VARIABLE: kill.fault(passage, token)})
    done = tunesmith(*tune(file, folder, kill.device), "--json", env=env)
    assert not orphans(env["TUNESMITH_TEST_MARK"])
    if kill.victim == "parent" and not token.exists():
        assert done.returncode == -signal.SIGKILL
        return False
    assert document_of(done, kill.device)["measured"] == len(rows(folder))
    return True


def go_on(file, folder, device):
    """Run the same command again: all rows are unchanged, and it reports as many measurements as rows were added."""
    before, again = rows(folder), tune(file, folder, device)
    is_fake = device.startswith("fake:")
    outcome = invoke_json(*again) if is_fake else document_of(tunesmith(*again, "--json"), device)
    after = rows(folder)
    assert {key: after.get(key) for key in before} == before, "nothing committed is lost or changed"
    assert outcome["measured"] == len(after) - len(before), "nothing committed is measured again"


@pytest.mark.parametrize("kill", kills("TUNESMITH_KILLS", len(POINTS)), ids=str)
def test_a_killed_run_goes_on_to_the_undisturbed_end(kill, undisturbed, tmp_path):
    whole, folder, token = undisturbed[kill.device], tmp_path / "run", tmp_path / "token"
    passage = 1 + int(kill.chance * whole.passages[kill.point])
    print(f"{kill}: passage {passage} of {whole.passages[kill.point]}")
    if not survived(kill, passage, whole.file, folder, token):
        go_on(whole.file, folder, kill.device)
    assert not token.exists(), "the kill did happen"
    assert measured(rows(folder)) == measured(whole.rows)
    assert results(folder) == whole.results


def test_every_point_is_reached_by_the_run_that_is_killed(undisturbed):
    """If it failed, the kills would not be spread over all points."""
    assert set(undisturbed[CPU].passages) == set(POINTS)
    assert set(undisturbed[GPU].passages) == set(POINTS) - {"probing"}
    assert {key[1].split("/")[0] for key in undisturbed[GPU].rows} == {"race", "full", "confirm", "anchor"}


def test_going_on_after_the_end_measures_nothing(undisturbed):
    whole = undisturbed[GPU]
    again = invoke_json(*tune(whole.file, whole.folder, GPU))
    assert again["measured"] == 0
    assert again["reused"] > 0
    assert rows(whole.folder) == whole.rows
    assert results(whole.folder) == whole.results


@pytest.fixture
def hanging(undisturbed, tmp_path):
    """A run, in a process group of its own, whose worker has measured something and hangs now."""
    token = tmp_path / "token"
    token.touch()
    env = environment(**{VARIABLE: f"verifying:worker:12:hang:{token}"})
    words = map(str, tune(undisturbed[GPU].file, tmp_path / "run", GPU))
    with started(execute, *words, env=env) as (run, call):
        while token.exists() and not run.has_message:
            time.sleep(0.005)
        yield run, call, env["TUNESMITH_TEST_MARK"], tmp_path / "run"


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_an_interrupted_run_keeps_everything_and_says_how_to_go_on(how, hanging, undisturbed):
    run, call, mark, folder = hanging
    if how == "Ctrl-C":
        os.killpg(run.pid, signal.SIGINT)
    else:
        os.kill(run.pid, signal.SIGTERM)
    code, err = code_of(run), call.err.read_text()
    assert (code, call.out.read_text()) == (130, "")
    assert err.splitlines()[-1].startswith("stopped; everything measured is in")
    assert "Traceback" not in err
    assert not orphans(mark)
    assert rows(folder), "something was measured by then"
    go_on(undisturbed[GPU].file, folder, GPU)
    assert measured(rows(folder)) == measured(undisturbed[GPU].rows)
    assert results(folder) == undisturbed[GPU].results


def test_of_two_runs_at_once_on_one_folder_the_second_waits_and_measures_nothing(undisturbed, tmp_path):
    whole, folder = undisturbed[GPU], tmp_path / "run"
    words = [*map(str, tune(whole.file, folder, GPU)), "--wait", "--json"]
    with ExitStack() as runs:
        both = [runs.enter_context(started(execute, *words, env=environment())) for _ in range(2)]
        assert [code_of(run) for run, _ in both] == [0, 0], [call.err.read_text() for _, call in both]
        documents = [json.loads(call.out.read_text()) for _, call in both]
    assert sorted(found["measured"] for found in documents) == [0, len(whole.rows)]
    assert measured(rows(folder)) == measured(whole.rows)
    assert results(folder) == whole.results


OPENCL = """
GlobalParameters:
  Noise: 0.1
  ConfirmBlocks: 6
  MaximumSamples: 10
  SamplingSeconds: 0.02
  WarmUpSeconds: 0.01
BenchmarkProblems:
  - - OperationType: GEMM
      DataType: s
    - InitialSolutionParameters:
        - LocalMemory: [False]
      BenchmarkCommonParameters:
        - ProblemSizes:
            - Exact: [64, 64, 64]
        - EdgeType: [Branch, ShiftPtr]
      ForkParameters:
        - ThreadTile: [[4, 4], [8, 4]]
      BenchmarkForkParameters:
        - LoopUnroll: [2, 4]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [32, 48, 16]
"""


@pytest.fixture(scope="module")
def undisturbed_opencl(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opencl")
    return Undisturbed.run(fake_file(folder, OPENCL), "OpenCL", folder / "whole")


@pytest.mark.opencl
@pytest.mark.parametrize("kill", kills("TUNESMITH_KILLS_OPENCL", 0), ids=str)
def test_on_a_real_device_a_killed_run_goes_on_and_loses_nothing(kill, undisturbed_opencl, tmp_path):
    """Times differ from run to run, and so may winners and the number of passages: the last may not be reached."""
    whole, token = undisturbed_opencl, tmp_path / "token"
    kill = replace(kill, device="OpenCL")
    passage, alive = 1 + int(kill.chance * whole.passages[kill.point]), True
    token.touch()
    while token.exists():
        folder = tmp_path / str(passage)
        print(f"{kill}: passage {passage} of {whole.passages[kill.point]}")
        alive = survived(kill, passage, whole.file, folder, token)
        passage = max(1, passage // 2)
    if not alive:
        go_on(whole.file, folder, "OpenCL")
    assert {row["outcome"] for row in rows(folder).values()} == {"ok"}
    assert results(folder).keys() == whole.results.keys()
