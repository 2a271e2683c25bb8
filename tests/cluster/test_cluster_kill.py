"""Kill a run on several devices anywhere: its end is the undisturbed end, and nothing committed is lost or repeated.

TUNESMITH_CLUSTER_KILLS and TUNESMITH_CLUSTER_KILLS_OPENCL say how often, on fake devices and on two halves of a CPU.
"""

from __future__ import annotations

import csv
import os
import signal
from itertools import count, islice

import pytest

from cluster_runs import VICTIMS, ClusterKill, killed_run, two_types
from tuning_runs import document, environment, fake_file, orphans, results, rows, tunesmith

pytestmark = pytest.mark.usefixtures("cluster_server")

FAKES = "fake:GPU:8*3"
IN_A_NEW_PYTHON = environment(PYTHONUTF8=1)
"""Variables with which a command is no fork of the tests' server."""


def measured(found):
    """Outcome and time of every cell but the anchor, which each run visits on the devices that it has."""
    return {key: (row["outcome"], row["seconds"]) for key, row in found.items() if not key[1].startswith("anchor")}


def comparable(folder):
    """What the run wrote. A table's `Detail` has the error of a result if the bench that timed it also verified it, and
    each device has a bench of its own, so that column is left out."""
    found = {}
    for name, text in results(folder).items():
        lines = list(csv.reader(text.splitlines())) if name.endswith(".details.csv") else [[text]]
        column = lines[0].index("Detail") if "Detail" in lines[0] else None
        found[name] = [[cell for index, cell in enumerate(line) if index != column] for line in lines]
    return found


def tune(file, folder, devices=FAKES, url=""):
    return ["tune", file, "-o", folder, "--devices", devices, "--json", *(("--store", url) if url else ())]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, cluster_server):
    """The same file, tuned on one device, without a cluster."""
    folder = tmp_path_factory.mktemp("undisturbed")
    file = two_types(folder)
    document(tunesmith("tune", file, "-o", folder / "run", "--device", "fake:GPU:8", "--json"))
    return file, folder / "run"


def disturbed(kill, file, folder, total, devices=FAKES, is_exact=True, url=""):
    """Run with the kill, then the same command again if the kill ended the run. Nothing that was committed changes.

    On a real device (not `is_exact`) commands are new Pythons, since PoCL does not survive a fork. `url` is that of the
    store, if it is a database."""
    ended = killed_run(kill, tune(file, folder, devices, url), folder, total, forked=is_exact, url=url)
    assert ended.happened, f"the run ended before the kill: {ended.err}"
    assert not orphans(ended.mark)
    before = rows(folder)
    if kill.victim in ("ts-device", "ts-compiler"):
        assert ended.code in ((0,) if is_exact else (0, 1)), ended.err + ended.out
        return before
    if kill.victim == "parent":
        assert ended.code == -signal.SIGKILL
    elif ended.code not in (0, 1):
        # The scheduler may die when everything is measured and it is not needed any more.
        assert ended.code == 2
        assert "the scheduler" in ended.err
        assert "the same command goes on" in ended.err
    again = tunesmith(*tune(file, folder, devices, url), env=None if is_exact else IN_A_NEW_PYTHON)
    assert again.returncode in ((0,) if is_exact else (0, 1)), again.stderr
    after = rows(folder)
    assert {key: after.get(key) for key in before} == before, "nothing committed is lost or changed"
    assert document(again, again.returncode)["measured"] == len(after) - len(before), "nothing is measured twice"
    return after


def kills(variable, default, victims=VICTIMS):
    drawn = (kill for kill in map(ClusterKill.draw, count()) if kill.victim in victims)
    return list(islice(drawn, int(os.environ.get(variable, default))))


def reaches_the_undisturbed_end(kill, undisturbed, tmp_path, url=""):
    file, whole = undisturbed
    expected = measured(rows(whole))
    after = disturbed(kill, file, tmp_path / "run", len(expected), url=url)
    assert measured(after) == expected
    assert not any(name.endswith("+") for _, name in after), "no row replaces another"
    assert comparable(tmp_path / "run") == comparable(whole)


@pytest.mark.slow
def test_a_killed_command_goes_on_to_the_undisturbed_end_and_leaves_no_orphan(undisturbed, tmp_path):
    """Kills of a device and of the scheduler are in test_cluster_runs.py, where a run costs less."""
    kill = ClusterKill.draw(2, stops=False)
    assert kill.victim == "parent"
    reaches_the_undisturbed_end(kill, undisturbed, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    """The address of a new database, or nothing for a store in the run's folder."""
    return request.getfixturevalue("postgresql").fresh() if request.param == "postgresql" else ""


@pytest.mark.thorough
@pytest.mark.parametrize("kill", kills("TUNESMITH_CLUSTER_KILLS", 100), ids=str)
def test_so_do_a_hundred_killed_runs(kill, undisturbed, tmp_path, url):
    reaches_the_undisturbed_end(kill, undisturbed, tmp_path, url)


ON_A_CPU = ("ts-device", "ts-scheduler", "parent")
"""A CPU's workers compile by themselves, since compiling beside them would disturb their times."""

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
            - Exact: [32, 64, 64]
        - EdgeType: [Branch, ShiftPtr]
      BenchmarkForkParameters:
        - LoopUnroll: [2, 4]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [32, 48, 16]
            - Exact: [48, 48, 16]
"""


@pytest.fixture(scope="module")
def undisturbed_opencl(tmp_path_factory, cluster_server):
    folder = tmp_path_factory.mktemp("opencl")
    file = fake_file(folder, OPENCL)
    done = tunesmith(*tune(file, folder / "run", "OpenCL*2"), env=IN_A_NEW_PYTHON)
    document(done, done.returncode)
    assert {row["outcome"] for row in rows(folder / "run").values()} == {"ok"}
    return file, folder / "run"


@pytest.mark.thorough
@pytest.mark.opencl
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two workers need a core each")
@pytest.mark.parametrize("kill", kills("TUNESMITH_CLUSTER_KILLS_OPENCL", 10, ON_A_CPU), ids=str)
def test_on_a_real_device_a_killed_run_goes_on_and_loses_nothing(kill, undisturbed_opencl, tmp_path):
    """Times differ from run to run, so winners may; every size has one, and no failure is blamed on a candidate."""
    file, whole = undisturbed_opencl
    least = len([name for _, name in rows(whole) if name in ("race", "full")])
    after = disturbed(kill, file, tmp_path / "run", least // 2, "OpenCL*2", is_exact=False)
    assert {row["outcome"] for row in after.values()} == {"ok"}
    assert results(tmp_path / "run").keys() == results(whole).keys()


def test_kills_are_drawn_for_every_process():
    """If it failed, the kills would not be spread over all processes."""
    drawn = [ClusterKill.draw(number) for number in range(100)]
    assert {kill.victim for kill in drawn} == {"ts-device", "ts-scheduler", "parent", "ts-compiler"}
    assert {kill.signal for kill in drawn} == {signal.SIGKILL, signal.SIGSTOP}
