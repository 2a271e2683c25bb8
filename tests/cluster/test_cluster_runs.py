"""Runs on a real cluster of this host's processes: winners, joining and leaving, and what goes wrong with words."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest

from cluster_runs import execute_in_temporary, many_sizes
from forked import run_forked
from opencl_runner import opencl_device
from tunesmith import session
from tunesmith.bench import Batch, Job, Policy, Race
from tunesmith.cluster import opened
from tunesmith.cluster import process as cluster_process
from tunesmith.cluster.bench import ClusterBench
from tunesmith.cluster.connection import ClusterConnection
from tunesmith.cluster.devices import kinds_of
from tunesmith.cluster.local import LocalHost, RunningScheduler, spawner
from tunesmith.cluster.messages import Role, compiler_versions
from tunesmith.cluster.process import SchedulerStart, WorkerStart
from tunesmith.cluster.selectors import host_devices
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Outcome, Problem, Solution, UserError, whole_device
from tunesmith.session.frame import events
from tunesmith.store import RunState, Store
from tunesmith.toolchains.cache import FOLDER_VARIABLE
from tuning_runs import document, environment, fake_file, rows

ONE_STEP = """
GlobalParameters: {CompileProcesses: 1, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}
BenchmarkProblems:
  - - DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [32, 32, 32]
"""

QUICK = Policy(maximum_samples=7, sampling_seconds=0.02, warm_up_seconds=0.01, compile_processes=1)


class HostedCluster:
    """A scheduler and two fake devices, which tests share; `host` may be given more."""

    def __init__(self, cache):
        self.cache, self.sentences = cache, []
        self.processes = spawner()
        self.scheduler = RunningScheduler.start(self.processes, SchedulerStart())
        self.host = self.join("fake:GPU:8*2")
        self.connection = ClusterConnection(self.scheduler.address)
        (self.kind,) = kinds_of(member.target for member in self.connection.devices().values())

    def join(self, devices, name=""):
        starts = opened.worker_starts(host_devices(devices), self.scheduler.address, name, self.cache, 1)
        host = LocalHost(self.processes, starts, self.sentences.append)
        while not host.settled:
            time.sleep(0.02)
        return host

    def open(self):
        return opened.OpenCluster(self.connection, (self.kind,))

    def close(self):
        self.connection.close()
        self.host.close()
        self.processes.close()


pytestmark = pytest.mark.usefixtures("cluster_server")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, cluster_server):
    hosted = HostedCluster(tmp_path_factory.mktemp("cache"))
    yield hosted
    hosted.close()


def job(m, fault="none", **values):
    kind = gemm_type()
    config = Configuration(
        {
            "KernelLanguage": "fake",
            "WorkGroup": (8, 8, 1),
            "ThreadTile": (4, 4),
            "LoopUnroll": 8,
            "VectorWidth": 1,
            "PrefetchGlobalRead": False,
            "GlobalSplitU": 1,
            "FakeFault": fault,
            "FakeNoise": 0,
            "FakeDrift": 0,
            **values,
        }
    )
    problem = Problem(kind, (m, 16, 16))
    return Job(f"{m} {fault} {sorted(values.items())}", Solution(kind, "FakeGemm", config), problem)


def test_a_problem_is_measured_on_one_device_and_many_problems_on_all(cluster):
    with ClusterBench(cluster.connection, cluster.kind, QUICK) as bench:
        jobs = [job(m, LoopUnroll=unroll) for m in (16, 32, 48, 64) for unroll in (4, 8, 16)]
        done = {done_job.key: found for done_job, found in bench.run(Batch((Race(tuple(jobs), step="a step"),)))}
        assert {found.outcome for found in done.values()} == {Outcome.OK}
        assert done.keys() == {each.key for each in jobs}
        by_problem: dict[Problem, set[str]] = {}
        for each in jobs:
            by_problem.setdefault(each.problem, set()).add(done[each.key].device)
        assert all(len(devices) == 1 for devices in by_problem.values())
        assert set.union(*by_problem.values()) == {"fake:GPU:8/0", "fake:GPU:8/1"}
        again = [job(m, LoopUnroll=32) for m in (16, 32, 48, 64)]
        later = {each.problem: found.device for each, found in bench.run(Batch((Race(tuple(again), step="a step"),)))}
        assert {problem: {device} for problem, device in later.items()} == by_problem, "the step goes on where it began"


def test_errors_are_data_on_a_cluster_too(cluster):
    """A job that crashes, one that is wrong, one that does not compile: each is a measurement, and the others are."""
    faults = {
        "segfault": Outcome.CRASH,
        "wrong value": Outcome.WRONG_RESULT,
        "compile error": Outcome.COMPILE_ERROR,
        "launch error": Outcome.LAUNCH_ERROR,
        "none": Outcome.OK,
    }
    lost: list[events.Event] = []
    with ClusterBench(cluster.connection, cluster.kind, QUICK, lost.append) as bench:
        done = dict(bench.run(Batch((Race(tuple(job(80, fault) for fault in faults)),))))
        assert {each.key: found.outcome for each, found in done.items()} == {
            job(80, fault).key: outcome for fault, outcome in faults.items()
        }
    assert any(type(event).__name__ == "WorkerLost" for event in lost), "the observer learns of it"


def test_finalists_are_interleaved_on_one_device_each_problem_on_its_own(cluster):
    from tunesmith.session.frame.many_devices import Confirmation

    with ClusterBench(cluster.connection, cluster.kind, QUICK) as bench:
        asked = [Confirmation((job(m), job(m, LoopUnroll=4)), until_clear=False) for m in (16, 32, 48)]
        found = dict(bench.interleave_many(asked))
        assert sorted(found) == [0, 1, 2]
        for measured in found.values():
            assert len({each.device for each in measured}) == 1
            assert len({len(each.samples) for each in measured}) == 1, "sample i of each is from round i"
        with pytest.raises(ValueError, match="one problem"):
            bench.interleave([job(16), job(32)])


@pytest.mark.parametrize(
    ("cores", "devices", "shares"),
    [(8, 2, [(0, 1, 2, 3), (4, 5, 6, 7)]), (9, 4, [(0, 1), (2, 3), (4, 5), (6, 7)]), (3, 2, [(), ()])],
)
def test_gpus_share_the_hosts_cores_if_there_are_two_for_each(monkeypatch, tmp_path, cores, devices, shares):
    monkeypatch.setattr(opened.os, "sched_getaffinity", lambda process: set(range(cores)))
    compiler, *starts = opened.worker_starts(host_devices(f"fake:GPU:8*{devices}"), "", "", tmp_path)
    assert compiler.processes == max(1, cores // 2)
    assert [start.cores for start in starts] == shares
    assert all(start.target for start in starts), "a GPU is known before its process starts"


def test_a_gpus_process_keeps_to_its_cores_and_only_a_part_of_a_cpu_tells_its_driver(monkeypatch, tmp_path):
    kept = []
    monkeypatch.setattr(cluster_process.os, "sched_setaffinity", lambda process, cores: kept.append(cores))
    monkeypatch.setattr(cluster_process.os, "environ", {})
    gpu = WorkerStart("", Role.DEVICE, "", tmp_path, cores=(2, 3))
    assert cluster_process._kept_to_cores(gpu) == {}
    assert cluster_process._kept_to_cores(replace(gpu, part="2 of 4 cores"))["POCL_CPU_MAX_CU_COUNT"] == "2"
    assert kept == [(2, 3), (2, 3)]


def test_a_device_is_opened_when_it_joins(cluster):
    """Before there is anything to measure."""
    with ClusterBench(cluster.connection, cluster.kind, QUICK) as bench:
        openings = [device.opening for device in bench._dispatcher.fleet]
        assert len(openings) == 2
        assert [opening.result(timeout=60) for opening in openings] == [True, True]


@pytest.mark.opencl
def test_a_part_of_a_cpu_says_the_compilers_versions_that_the_command_knows(cluster):
    """By itself it would call a BLAS that keeps to its cores another version, and be refused work."""
    target = opencl_device().target
    parts = len(os.sched_getaffinity(0))
    (first, *_) = opened.worker_starts(host_devices(f"{target.selector}*{parts}"), "", "parts", cluster.cache, 1)
    assert first.toolchains == compiler_versions(target)
    start = replace(first, address=cluster.scheduler.address, toolchains={"BLAS": "another"})
    host = LocalHost(cluster.processes, [start], cluster.sentences.append)
    try:
        while not host.settled:
            time.sleep(0.02)
        (member,) = (each for each in cluster.connection.devices().values() if each.device == start.device)
        assert member.toolchains == start.toolchains
        assert member.target.name == f"{target.name} (1 of {parts} cores)"
        assert whole_device(member.target.name) == target.name
    finally:
        host.close()


def test_a_request_that_ends_early_leaves_the_next_one_on_the_connection_alone(cluster):
    """What the first has sent may still run when the second is sent, by another bench."""
    sizes = range(16, 496, 16)
    with ClusterBench(cluster.connection, cluster.kind, QUICK) as bench:
        begun = bench.run(Batch((Race(tuple(job(m, LoopUnroll=9) for m in sizes)),)))
        next(begun)
        begun.close()
    jobs = [job(m, LoopUnroll=11) for m in sizes]
    with ClusterBench(cluster.connection, cluster.kind, QUICK) as bench:
        done = [each for each, found in bench.run(Batch((Race(tuple(jobs)),))) if found.ok]
    assert sorted(each.key for each in done) == sorted(each.key for each in jobs)


def test_a_module_is_compiled_once_for_all_devices(cluster):
    with ClusterBench(cluster.connection, cluster.kind, QUICK) as bench:
        jobs = [job(m, LoopUnroll=unroll) for unroll in (5, 7) for m in (16, 32, 48, 64, 80, 96)]
        done = dict(bench.run(Batch((Race(tuple(jobs)),))))
        assert len({found.device for found in done.values()}) == 2
        charged = [each for each, found in done.items() if found.cost.compile > 0]
        assert 1 <= len(charged) <= 2, "two texts of twelve jobs: each was compiled once, and charged to one job"


def test_a_device_may_join_in_the_middle_and_leave_again(cluster, tmp_path):
    """The one that joins measures; when it is killed, its work goes to others and nothing is lost or repeated. The last
    step has enough sizes for a device that comes late on a busy machine."""
    file = many_sizes(tmp_path)
    file.write_text(file.read_text().replace("[32, 32, 160]", "[32, 32, 416]"))
    joined: list[LocalHost] = []
    counts: Counter[str] = Counter()

    def observe(event):
        counts[type(event).__name__] += 1
        if isinstance(event, events.StepEnded) and not joined:
            joined.append(cluster.join("fake:GPU:8", "late"))
        if joined and isinstance(event, events.CellMeasured) and event.measurement.device.endswith("@late"):
            counts["late"] += 1
            if counts["late"] == 3:
                os.kill(joined[0].pids["fake:GPU:8@late"], signal.SIGKILL)

    try:
        done = session.tune(
            file,
            tmp_path / "run",
            device=cluster.kind,
            benches=cluster.open().benches_for(cluster.kind),
            observe=observe,
        )
    finally:
        for host in joined:
            host.close()
    assert counts["late"] >= 3, "the device that joined was given work"
    assert done.look_at == []
    assert done.ledger.measured == len(rows(tmp_path / "run"))
    with Store.open(tmp_path / "run" / "measurements.sqlite") as store:
        hosts = {entry.measurement.host for entry in store.entries()}
    here = socket.gethostname()
    assert hosts == {f"{here} fake:GPU:8/0", f"{here} fake:GPU:8/1", "late fake:GPU:8"}
    assert any("a new one takes its place" in sentence for sentence in cluster.sentences)


def test_a_run_whose_scheduler_is_killed_keeps_everything_and_goes_on(cluster, tmp_path):
    file, folder = many_sizes(tmp_path), tmp_path / "run"
    scheduler = RunningScheduler.start(cluster.processes, SchedulerStart())
    starts = opened.worker_starts(host_devices("fake:GPU:8"), scheduler.address, "", cluster.cache, 1)
    host = LocalHost(cluster.processes, starts, cluster.sentences.append)
    while not host.settled:
        time.sleep(0.02)
    connection = ClusterConnection(scheduler.address)
    counts: Counter[str] = Counter()

    def observe(event):
        counts[type(event).__name__] += 1
        if counts["CellMeasured"] == 9:
            scheduler.child.end()

    benches = opened.OpenCluster(connection, (cluster.kind,)).benches_for(cluster.kind)
    with pytest.raises(UserError, match="the scheduler was lost; everything measured until then is kept"):
        session.tune(file, folder, device=cluster.kind, benches=benches, observe=observe)
    connection.close()
    host.close()
    before = rows(folder)
    assert len(before) >= 9
    again = session.tune(file, folder, device=cluster.kind, benches=cluster.open().benches_for(cluster.kind))
    after = rows(folder)
    assert {key: after.get(key) for key in before} == before
    assert again.ledger.measured == len(after) - len(before)
    assert again.state is RunState.FINISHED


def test_a_worker_that_hangs_is_replaced(cluster, tmp_path):
    starts = opened.worker_starts(host_devices("fake:GPU:8"), cluster.scheduler.address, "hangs", tmp_path, 1)
    sentences: list[str] = []
    host = LocalHost(cluster.processes, starts, sentences.append, hung_seconds=2.5)
    try:
        while not host.settled:
            time.sleep(0.02)
        before = host.pids["fake:GPU:8@hangs"]
        os.kill(before, signal.SIGSTOP)
        deadline = time.monotonic() + 60
        while not (sentences and host.settled) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert any("fake:GPU:8@hangs gave no sign for 2.5 s" in sentence for sentence in sentences), sentences
        assert host.pids["fake:GPU:8@hangs"] != before
    finally:
        host.close()


def test_two_workers_of_one_device_do_not_measure_at_once(cluster, tmp_path):
    sentences: list[events.Event] = []
    with ClusterBench(cluster.connection, cluster.kind, QUICK, sentences.append):
        again = cluster.join("fake:GPU:8*2")
        try:
            bench = ClusterBench(cluster.connection, cluster.kind, QUICK, sentences.append)
            assert len(bench.devices) == 2
        finally:
            again.close()
    assert any(
        "another worker has that device" in event.text for event in sentences if isinstance(event, events.Message)
    )


def test_no_scheduler_is_a_mistake_with_a_remedy(monkeypatch):
    for module in ("connection", "opened"):
        monkeypatch.setattr(f"tunesmith.cluster.{module}.CONNECT_SECONDS", 0.5)
    with pytest.raises(UserError, match=r"tcp://127.0.0.1:1: no scheduler can be reached.*dask scheduler"):
        ClusterConnection("tcp://127.0.0.1:1")
    with pytest.raises(UserError, match="neither an address nor a file"):
        opened.connected("no-such-file")


def test_a_lost_scheduler_ends_a_wait_and_says_so(own_servers):
    """The scheduler is started by a server of its own here, as it is for users."""
    with spawner() as processes:
        scheduler = RunningScheduler.start(processes, SchedulerStart())
        connection = ClusterConnection(scheduler.address)
        threading.Timer(0.5, scheduler.child.end).start()
        with pytest.raises(UserError, match="the scheduler was lost; everything measured until then is kept"):
            connection.next_news(30)
        with pytest.raises(UserError, match="the same command goes on"):
            connection.members()
        connection.close()


def test_a_command_that_ends_leaves_no_device_at_work(cluster):
    """Its workers stop after the measurement at hand; the next command does not wait for the rest of a portion."""
    connection = ClusterConnection(cluster.scheduler.address)
    jobs = [job(16, LoopUnroll=unroll) for unroll in range(20, 120)]
    slow = replace(QUICK, noise=1e-9, minimum_samples=2_000, maximum_samples=2_000, sampling_seconds=60)
    measured = ClusterBench(connection, cluster.kind, slow).run(Batch((Race(tuple(jobs)),)))
    for _ in range(2):
        next(measured)
    connection.close()

    def count():
        sent = cluster.connection.client.get_events(connection.topic)
        return sum(event["kind"] == "measured" for _, event in sent)

    time.sleep(1)
    after_a_second = count()
    time.sleep(1)
    assert count() <= after_a_second + 1, "the measurement at hand may still end"
    assert after_a_second < len(jobs) / 2


def test_a_run_leaves_nothing_in_the_temporary_folder_but_what_the_next_removes(tmp_path):
    """Workers are killed when the command ends. What Dask keeps for them lies in one folder, which it cleans itself.

    The command is a fork of the tests' server, and finds the temporary folder anew.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    variables = {"TMPDIR": temporary, FOLDER_VARIABLE: tmp_path / "cache"}
    words = ("tune", fake_file(tmp_path, ONE_STEP), "-o", tmp_path / "run", "--devices", "fake:GPU:8*2", "--json")
    document(run_forked(execute_in_temporary, *map(str, words), env=environment(**variables)))
    assert [path.name for path in temporary.iterdir()] == ["dask-scratch-space"]
