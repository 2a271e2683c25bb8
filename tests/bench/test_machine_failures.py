"""A failure that the machine caused is no result: it is not stored, and the same command measures again later."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter

import pytest

from bench_jobs import GPU, QUICK, batch, job
from command_line import invoke
from golden_bench import nothing_measured
from tunesmith.bench import Bench, machine_failures
from tunesmith.bench.injected_faults import VARIABLE
from tunesmith.records import Measurement, Outcome, UserError
from tunesmith.session import Reuse, tune
from tunesmith.session.frame.reuse import ReuseRule
from tunesmith.store import RunState, Store
from tuning_runs import FAKE, fake_file, rows

FAILING = FAKE.replace("VectorWidth: [1, 4]", "FakeFault: [none, wrong value]")
POCL_ON_A_FULL_DISK = """clBuildProgram failed: BUILD_PROGRAM_FAILURE

Build on <pyopencl.Device 'pthread-skylake-avx512' on 'Portable Computing Language' at 0x55682a2401c0>:

Device pthread-skylake-avx512 failed to build the program

(options: -cl-std=CL1.2 -cl-mad-enable)"""


def tuned(folder, text=FAKE, **options):
    return tune(fake_file(folder, text), folder / "run", device="fake:GPU:8", **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run that came to its end, and what the run found."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, tuned(folder)


@pytest.fixture
def after_a_run(finished, tmp_path):
    """A copy of that folder, in which a test goes on, and what the run found."""
    folder, first = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path, first


def changed(folder, **columns):
    """Turn the store into one of an earlier version, which has failures with `columns` in place of all races' times."""
    names = ", ".join(f"{name} = ?" for name in columns)
    nothing = "seconds = NULL, low = NULL, high = NULL, count = NULL, samples = x''"
    with sqlite3.connect(folder / "run" / "measurements.sqlite") as connection:
        done = connection.execute(
            f"UPDATE measurements SET {names}, {nothing} WHERE round = 'race'", [*columns.values()]
        )
    connection.close()
    return done.rowcount


@pytest.mark.parametrize(
    ("outcome", "reason", "detail"),
    [
        ("compile error", "compiler crashed", ""),
        ("compile error", "compiler killed", ""),
        ("compile error", "build failed", POCL_ON_A_FULL_DISK),
        ("compile error", "compiler crashes", "LLVM ERROR: IO failure on output stream: No space left on device"),
        ("compile error", "the machine failed", "FileNotFoundError: [Errno 2] ptxas"),
        ("compile error", "unexpected exception", "OSError: [Errno 122] Disk quota exceeded"),
        ("compile error", "compiler failed", "PTXASError: `ptxas` failed with error code -9"),
        ("compile error", "out of memory", ""),
        ("launch error", "out of memory", "on the host: "),
        ("launch error", "unexpected exception", "MemoryError"),
        ("launch error", "ecc uncorrectable", ""),
        ("crash", "SIGKILL", "while timing"),
        ("crash", "SIGTERM", ""),
        ("crash", "exit 1", "OSError: [Errno 24] Too many open files"),
        ("timeout", "kept waiting", ""),
    ],
)
def test_the_machine_is_blamed(outcome, reason, detail):
    assert reason in machine_failures.machine_failure(Measurement(Outcome(outcome), reason, detail))


@pytest.mark.parametrize(
    ("outcome", "reason", "detail"),
    [
        ("ok", "", "relative error 1e-7"),
        ("rejected", "out of memory", ""),
        ("compile error", "compiler crashes", "Stack dump: 0. Program arguments"),
        ("compile error", "build failed", "<source>:3:1: error: use of undeclared identifier 'x'"),
        ("compile error", "source rejected", "no such parameter"),
        ("wrong result", "wrong value", "No space left on device"),
        ("launch error", "illegal address", ""),
        ("crash", "SIGSEGV", "while timing"),
        ("crash", "SIGABRT", ""),
        ("timeout", "timeout", "no answer for 60 s"),
        ("timeout", "compiler timed out", ""),
    ],
)
def test_the_candidate_is_blamed(outcome, reason, detail):
    assert machine_failures.machine_failure(Measurement(Outcome(outcome), reason, detail)) == ""


@pytest.mark.parametrize(("point", "role"), [("compiling", "compiler"), ("timing", "worker")])
def test_what_the_system_kills_is_measured_by_the_same_command(point, role, tmp_path, monkeypatch):
    """Every process is killed at its first job, as when memory runs out. Nothing is stored about these jobs."""
    with monkeypatch.context() as patched:
        patched.setenv(VARIABLE, f"{point}:{role}:1:kill")
        killed = tuned(tmp_path)
    assert rows(tmp_path / "run") == {}
    assert killed.failed == Counter()
    assert any("could not be measured because of this machine" in sentence for sentence in killed.look_at)
    again = tuned(tmp_path)
    assert (again.look_at, again.ledger.reused) == ([], 0)
    assert {row["outcome"] for row in rows(tmp_path / "run").values()} == {"ok"}


@pytest.mark.parametrize(
    ("reason", "detail"), [("compiler crashed", ""), ("build failed", POCL_ON_A_FULL_DISK)], ids=["crash", "no word"]
)
def test_a_store_of_an_earlier_version_recovers(reason, detail, after_a_run):
    tmp_path, first = after_a_run
    broken = changed(tmp_path, outcome="compile error", reason=reason, detail=detail)
    before = rows(tmp_path / "run")
    again = tuned(tmp_path)
    after = rows(tmp_path / "run")
    assert again.ledger.measured >= broken > 0
    assert (again.look_at, again.plan.groups[0].result) == ([], first.plan.groups[0].result)
    assert {key: after[key] for key in before} == before, "rows are only added"
    with Store.read(tmp_path / "run" / "measurements.sqlite") as store:
        assert not list(store.failures())
    assert tuned(tmp_path).ledger.measured == 0


def test_a_full_disk_ends_the_run_and_names_the_folder(tmp_path, monkeypatch):
    """Compilers fail then, and may not say why. Earlier results are stored, but not the failure."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    text = FAKE.replace("VectorWidth: [1, 4]", "FakeFault: [none, compile error]")
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(UserError, match=r"cannot write there \(No space left on device\)") as raised:
            tuned(tmp_path, text)
    assert raised.value.location == str(tmp_path / "run" / "cache")
    before = rows(tmp_path / "run")
    assert {row["outcome"] for row in before.values()} == {"ok"}
    tuned(tmp_path, text)
    after = rows(tmp_path / "run")
    assert {key: after[key] for key in before} == before
    assert {row["reason"] for row in after.values()} == {"", "compile error"}


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no posix_fallocate on this system")
def test_a_folder_that_takes_no_file_is_found(tmp_path):
    machine_failures.check_room([tmp_path, tmp_path / "not" / "made"])
    code = (
        "import resource, sys; from pathlib import Path; from tunesmith.bench import machine_failures\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); machine_failures.check_room([Path(sys.argv[1])])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert "compilers cannot write there (File too large)" in done.stderr


def test_an_error_of_the_system_in_a_compiler_is_the_machines(tmp_path, monkeypatch):
    """For example, the compiler's temporary folder may be gone."""
    hook = tmp_path / "hook" / "sitecustomize.py"
    hook.parent.mkdir()
    hook.write_text(
        "from tunesmith.toolchains.fake import FakeToolchain\n"
        "def refused(self, module, target):\n    raise FileNotFoundError(2, 'No such file', 'ptxas')\n"
        "FakeToolchain.compile = refused\n"
    )
    monkeypatch.setattr(sys, "path", [str(hook.parent), *sys.path])
    with Bench(GPU, QUICK, tmp_path / "cache") as bench:
        ((_, measurement),) = bench.run(batch([job()]))
    assert (measurement.outcome, measurement.reason) == (Outcome.COMPILE_ERROR, machine_failures.MACHINE_FAILED)
    assert "ptxas" in measurement.detail


def test_a_process_that_others_keep_from_running_is_told_from_one_that_hangs(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        try:
            assert not machine_failures.kept_waiting(process.pid, {}, 1.0)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert machine_failures.kept_waiting(process.pid, {}, 1.0)
            process.send_signal(signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED)
            before = {"1": 5.0, "2": 0.0}
            monkeypatch.setattr(machine_failures, "waiting_seconds", lambda _: {"1": 5.7, "2": 0.8})
            assert machine_failures.kept_waiting(process.pid, before, 1.0)
            assert not machine_failures.kept_waiting(process.pid, before, 1.2)
        finally:
            process.kill()


@pytest.mark.parametrize(("point", "role"), [("compiling", "compiler"), ("timing", "worker")])
def test_a_process_that_is_stopped_from_outside_is_no_hang_of_the_candidate(point, role, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, f"{point}:{role}:1:stop")
    with Bench(GPU, QUICK, tmp_path) as bench:
        ((_, measurement),) = bench.run(batch([job()]))
    assert measurement.outcome is Outcome.TIMEOUT
    assert machine_failures.machine_failure(measurement)


def test_what_failed_is_measured_again_on_request(tmp_path):
    first = tuned(tmp_path, FAILING)
    before = rows(tmp_path / "run")
    wrong = [key for key, row in before.items() if row["outcome"] == "wrong result"]
    assert wrong
    assert tuned(tmp_path, FAILING).ledger.measured == 0
    assert tuned(tmp_path, FAILING, reuse=Reuse.GOOD).failed == first.failed
    added = rows(tmp_path / "run").keys() - before.keys()
    again = {(key, round_.rstrip("+")) for key, round_ in added if not round_.startswith("anchor/")}
    assert again == set(wrong)
    assert tuned(tmp_path, FAILING).ledger.measured == 0


def test_everything_is_measured_again_on_request_and_a_stopped_run_goes_on(after_a_run):
    tmp_path, _ = after_a_run
    whole = len(rows(tmp_path / "run"))
    stopped = tuned(tmp_path, reuse=Reuse.NONE, budget_minutes=1e-9)
    assert (stopped.state, stopped.ledger.reused) == (RunState.INTERRUPTED, 0)
    rest = tuned(tmp_path, reuse=Reuse.NONE)
    assert rest.ledger.reused >= stopped.ledger.measured > 0
    assert len(rows(tmp_path / "run")) == whole + stopped.ledger.measured + rest.ledger.measured
    with Store.read(tmp_path / "run" / "measurements.sqlite") as store:
        stands = list(store.entries())
    assert len(stands) == whole
    assert min(entry.measurement.started for entry in stands) >= stopped_began(tmp_path)
    assert tuned(tmp_path).ledger.measured == 0, "what was measured again is what counts"
    assert tuned(tmp_path, reuse=Reuse.NONE).ledger.measured > 0, "a run that came to its end is not gone on with"


def stopped_began(folder):
    """The time at which the first run that measured everything again began."""
    with Store.read(folder / "run" / "measurements.sqlite") as store:
        return next(run.started for run in store.runs() if run.start.remeasures)


@pytest.mark.parametrize(
    "words",
    ["tune", "random tune", "portblas tune", "stream-k sweep", "calibrate stream-k"],
)
def test_every_command_that_measures_takes_both_options(words):
    printed = invoke(*words.split(), "--help").stdout
    assert "--retry-failed" in printed
    assert "--remeasure" in printed


@pytest.mark.parametrize(
    ("options", "reuse"), [((), Reuse.ALL), (("--retry-failed",), Reuse.GOOD), (("--remeasure",), Reuse.NONE)]
)
def test_the_options_reach_the_run(tmp_path, monkeypatch, options, reuse):
    rules = []

    def rule_of(store, reuse):
        rules.append(reuse)
        return ReuseRule(reuse)

    monkeypatch.setattr(ReuseRule, "of", rule_of)
    with nothing_measured():
        invoke("tune", fake_file(tmp_path), "-o", tmp_path / "run", "--device", "fake:GPU:8", "-q", *options)
    assert rules == [reuse]
