"""Real worker and compiler processes on the fake device: every fault has its outcome, and the run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench_jobs import CPU, GPU, QUICK, batch, job, problem
from processes import processes
from tunesmith.bench import Bench, Dispatched, JobMeasured, ModuleCompiled, Policy, WorkerLost
from tunesmith.bench.processes.compilers import Compilers
from tunesmith.kernels.fake import FAULTS, FakeGemm
from tunesmith.records import Outcome, Rejection, UserError

EXPECTED = {
    "none": (Outcome.OK, ""),
    "wrong value": (Outcome.WRONG_RESULT, "wrong value"),
    "unwritten element": (Outcome.WRONG_RESULT, "unwritten element"),
    "maximum with the old": (Outcome.WRONG_RESULT, "wrong value"),
    "minimum with the old": (Outcome.WRONG_RESULT, "wrong value"),
    "skip the last K": (Outcome.WRONG_RESULT, "wrong value"),
    "swap operands": (Outcome.WRONG_RESULT, "wrong value"),
    "index off by one": (Outcome.WRONG_RESULT, "wrong value"),
    "modify an input": (Outcome.WRONG_RESULT, "modified an input"),
    "write past the end": (Outcome.WRONG_RESULT, "wrote outside the output"),
    "write before the start": (Outcome.WRONG_RESULT, "wrote outside the output"),
    "write between rows": (Outcome.WRONG_RESULT, "wrote outside the output"),
    "out of memory": (Outcome.LAUNCH_ERROR, "out of memory"),
    "launch error": (Outcome.LAUNCH_ERROR, "invalid launch"),
    "refusal": (Outcome.REJECTED, "not supported"),
    "poison": (Outcome.LAUNCH_ERROR, "illegal address"),
    "segfault": (Outcome.CRASH, "SIGSEGV"),
    "abort": (Outcome.CRASH, "SIGABRT"),
    "hang": (Outcome.TIMEOUT, "timeout"),
    "segfault when timed": (Outcome.CRASH, "SIGSEGV"),
    "hang when timed": (Outcome.TIMEOUT, "timeout"),
    "break the next": (Outcome.CRASH, "broke the next"),
    "compile error": (Outcome.COMPILE_ERROR, "compile error"),
    "compiler segfault": (Outcome.COMPILE_ERROR, "compiler crashes"),
    "compiler hang": (Outcome.TIMEOUT, "compiler timed out"),
}
SERVER = "tunesmith.bench.processes.fork_server"
PADDED = problem(leading=(50, 50, 50, 50))


def children():
    """Ids of the bench's processes that this process started and that have not ended; the session's own server, which
    imports `preloaded`, is to go on."""
    live = list(processes())
    servers = [process for process in live if process.parent == os.getpid() and SERVER in process.command]
    forked = {process.pid for process in live if process.parent in {server.pid for server in servers}}
    return forked | {server.pid for server in servers if "preloaded" not in server.command}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def measure(target, jobs, cache, policy=QUICK, racing=False, observe=lambda event: None):
    with Bench(target, policy, cache, observe) as bench:
        return {job.key: measurement for job, measurement in bench.run(batch(jobs, racing=racing))}


@pytest.mark.parametrize(
    "target", [pytest.param(GPU, id="GPU", marks=pytest.mark.thorough), pytest.param(CPU, id="CPU")]
)
def test_every_fault_has_its_outcome_and_the_good_ones_between_them_are_measured(target, cache):
    assert set(EXPECTED) == set(FAULTS)
    jobs, expected = [], {}
    for index, fault in enumerate(FAULTS):
        if target is CPU and fault == "break the next":
            # The compile process breaks too, and the order of jobs does not determine which program crashes there.
            continue
        bad, good = job(PADDED, fault=fault), job(PADDED, LoopUnroll=index + 1)
        jobs += [bad, good]
        expected[bad.key], expected[good.key] = EXPECTED[fault], EXPECTED["none"]
    results = measure(target, jobs, cache)
    assert {key: (found.outcome, found.reason) for key, found in results.items()} == expected
    assert all(bool(found.samples) == (found.ok or found.reason == "broke the next") for found in results.values())
    assert not children()


def test_after_a_program_that_breaks_the_next_one_the_next_is_measured_and_the_first_is_blamed(cache):
    lost = []
    jobs = [job(LoopUnroll=4), job(fault="break the next"), job(LoopUnroll=8), job(LoopUnroll=16)]
    results = measure(
        GPU, jobs, cache, observe=lambda event: lost.append(event) if isinstance(event, WorkerLost) else None
    )
    assert [results[job_.key].outcome for job_ in jobs] == [Outcome.OK, Outcome.CRASH, Outcome.OK, Outcome.OK]
    assert [event.key for event in lost] == [jobs[2].key] * 2


def test_a_breaker_that_is_last_or_followed_by_itself_is_no_crash(cache):
    """It was verified and timed, and nothing shows that it broke the worker."""
    jobs = [job(fault="break the next")]
    assert measure(GPU, jobs, cache)[jobs[0].key].ok


def test_a_crash_only_affects_the_job_that_crashed(cache):
    jobs = [job(LoopUnroll=4), job(fault="segfault"), job(LoopUnroll=8)]
    results = measure(GPU, jobs, cache)
    assert [results[job_.key].outcome for job_ in jobs] == [Outcome.OK, Outcome.CRASH, Outcome.OK]


def test_a_standby_that_waited_longer_than_opening_may_take_steps_in(cache):
    """It opened the device in time. The time that it then waited for work does not count."""
    with Bench(GPU, QUICK, cache) as bench:
        list(bench.run(batch([job(LoopUnroll=4)])))
        standby = bench._tools.workers._standby
        assert standby.connection.poll(60)
        standby.deadline = 0.0
        crashed, good = job(fault="segfault"), job(LoopUnroll=8)
        found = {job_.key: measurement.outcome for job_, measurement in bench.run(batch([crashed, good]))}
    assert found == {crashed.key: Outcome.CRASH, good.key: Outcome.OK}


def test_one_module_is_compiled_once_however_many_jobs_need_it(cache):
    compiled = []
    jobs = [job(size=problem(size), GlobalSplitU=split) for size in (32, 48) for split in (1, 2)]
    results = measure(
        GPU, jobs, cache, observe=lambda event: compiled.append(event) if isinstance(event, ModuleCompiled) else None
    )
    assert len(compiled) == 1
    assert sum(found.cost.compile > 0 for found in results.values()) == 1


def test_a_rejection_after_compiling_is_a_measurement(cache, monkeypatch):
    def useless(self, config, facts, target):
        yield Rejection("registers", f"{facts[0].registers} registers")

    monkeypatch.setattr(FakeGemm, "rejections_compiled", useless)
    hanging = job()
    found = measure(GPU, [hanging], cache)[hanging.key]
    assert (found.outcome, found.reason, found.detail) == (Outcome.REJECTED, "registers", "32 registers")


def test_on_the_hosts_cpu_nothing_compiles_while_something_is_measured(cache):
    events = []
    jobs = [job(LoopUnroll=unroll) for unroll in range(1, 25)]
    measure(CPU, jobs, cache, observe=events.append)
    measuring = False
    for event in events:
        if isinstance(event, Dispatched | JobMeasured):
            measuring = isinstance(event, Dispatched)
        assert not (measuring and isinstance(event, ModuleCompiled))
    kinds = [type(event) for event in events]
    assert kinds.index(Dispatched) < len(kinds) - kinds[::-1].index(ModuleCompiled), "it goes by chunks"


def test_racing_compares_within_a_group_and_problem_only(cache):
    fast, slow = {"ThreadTile": (8, 8)}, {"ThreadTile": (2, 2), "VectorWidth": 8}
    large, small = problem(512, 512, 512), problem(384, 384, 384)
    groups = [
        [job(size=large, **fast), job(size=large, **slow), job(size=small, **slow)],
        [job(size=large, **slow, LoopUnroll=4)],
    ]
    with Bench(GPU, QUICK, cache) as bench:
        raced = {job_.key: found.raced for job_, found in bench.run(batch(*groups, racing=True))}
    assert raced == {job_.key: index == 1 for index, job_ in enumerate(job_ for group in groups for job_ in group)}


def test_racing_changes_no_winner_by_more_than_the_noise(cache):
    # The fastest comes first, so that jobs that lose by more than drift are stopped.
    jobs = [
        job(size=problem(256, 256, 256), ThreadTile=tile, VectorWidth=width, LoopUnroll=unroll, FakeNoise=2)
        for tile in ((8, 8), (8, 4), (4, 4))
        for width, unroll in ((4, 8), (2, 16), (1, 8))
    ]
    policy = replace(QUICK, noise=0.01, sampling_seconds=1.0)
    seconds, counts = [], []
    # By itself, a job has no rival, so that nothing ends its sampling early.
    for races, racing in (([jobs], True), ([[alone] for alone in jobs], False)):
        with Bench(GPU, policy, cache) as bench:
            results = [found for _, found in bench.run(batch(*races, racing=racing))]
        seconds.append(min(found.estimate.seconds for found in results))
        counts.append(sum(found.estimate.count for found in results))
    assert seconds[0] == pytest.approx(seconds[1], rel=0.03)
    assert counts[0] < 0.8 * counts[1]


def test_interleaved_samples_are_aligned_and_a_bad_one_is_left_out(cache):
    names = ["none", "wrong value", "segfault", "none", "hang", "compile error"]
    jobs = [job(fault=name, LoopUnroll=4 + index, FakeNoise=1) for index, name in enumerate(names)]
    with Bench(GPU, QUICK, cache) as bench:
        found = bench.interleave(jobs)
    assert [measurement.outcome for measurement in found] == [EXPECTED[name][0] for name in names]
    assert {len(measurement.samples) for measurement in found if measurement.ok} == {Policy().confirm_blocks}
    assert not children()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("target", [GPU, CPU], ids=["GPU", "CPU"])
def test_a_build_that_ends_between_the_check_and_the_wait_is_not_waited_for(target, cache, monkeypatch):
    """The compiler finishes after `binaries` found no result, and before the wait for the compiler."""
    binaries = Compilers.binaries

    def slowly(self, details):
        built = binaries(self, details)
        if built is None:
            time.sleep(1.0)
        return built

    monkeypatch.setattr(Compilers, "binaries", slowly)
    with Bench(target, QUICK, cache) as bench:
        (found,) = bench.interleave([job()])
    assert found.ok


def test_jobs_of_different_problems_cannot_be_interleaved(cache):
    with Bench(GPU, QUICK, cache) as bench, pytest.raises(ValueError, match="one problem"):
        bench.interleave([job(), job(size=problem(16))])


def test_a_drifting_device_shows_in_the_anchors_time(cache):
    anchor, others = job(FakeDrift=10), [job(LoopUnroll=unroll, FakeDrift=10) for unroll in range(10, 40)]
    with Bench(GPU, QUICK, cache) as bench:
        (_, first), *_ = bench.run(batch([anchor]))
        list(bench.run(batch(others)))
        (_, last), *_ = bench.run(batch([anchor]))
    assert last.estimate.seconds > 1.02 * first.estimate.seconds


def test_a_device_that_is_not_there_is_the_users_to_put_right(cache):
    gone = replace(GPU, api="OpenCL", selector="OpenCL:99:99", name="no such device")
    with Bench(gone, QUICK, cache) as bench, pytest.raises(UserError):
        list(bench.run(batch([job()])))


def test_leaving_a_run_halfway_leaves_a_usable_bench_and_no_process(cache):
    with Bench(GPU, QUICK, cache) as bench:
        next(bench.run(batch([job(LoopUnroll=unroll) for unroll in range(1, 9)])))
        again = list(bench.run(batch([job(LoopUnroll=3)])))
        assert children()
    assert again[0][1].ok
    assert not children()


PARENT = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from pathlib import Path
from bench_jobs import GPU, QUICK, batch, job
from tunesmith.bench import Bench
patient = replace(QUICK, timeout_seconds=60, compile_timeout_seconds=60)
with Bench(GPU, patient, Path(sys.argv[1])) as bench:
    jobs = [job(LoopUnroll=unroll) for unroll in range(1, 9)]
    jobs[3] = job(fault={fault!r})
    for job_, found in bench.run(batch(jobs)):
        print("measured", flush=True)
    sys.stdin.read()
"""


def group_of(parent):
    """Command lines of live processes that name this parent's id."""
    commands = (process.command for process in processes())
    return [command for command in commands if "tunesmith.bench." in command and command.endswith(f" {parent}")]


@pytest.mark.parametrize("fault", ["hang", "compiler hang", "none"])
def test_a_parent_killed_outright_leaves_no_process_behind(fault, tmp_path):
    """The children die whatever they are doing, since the operating system's kernel ends them."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(tests=str(Path(__file__).parents[1] / "support"), fault=fault))
    command = [sys.executable, str(script), str(tmp_path)]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "measured\n"
    assert group_of(parent.pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while group_of(parent.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not group_of(parent.pid)


def test_on_a_device_of_its_own_candidates_of_one_problem_come_in_turn(cache):
    """A problem's operands are large, so they are made once, whatever the order of the groups. The programs are
    compiled before, since during compilation any job that is ready may run."""
    events = []
    sizes = [problem(16), problem(24), problem(32)]
    groups = [[job(size=size, LoopUnroll=unroll) for size in sizes] for unroll in (2, 4, 8)]
    with Bench(GPU, QUICK, cache, events.append) as bench:
        list(bench.run(batch([job(LoopUnroll=unroll) for unroll in (2, 4, 8)])))
        events.clear()
        found = [measurement for _, measurement in bench.run(batch(*groups))]
    dispatched = [event.key.split()[0] for event in events if isinstance(event, Dispatched)]
    assert dispatched == [str(size) for size in sizes for _ in groups]
    assert all(measurement.ok for measurement in found)
