"""Processes may share a store, and may be killed while they write to it."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem, ProblemType, Solution, Target
from tunesmith.store import Store, StoreEntry, sqlite

GEMM = ProblemType("GEMM", "Cijk_Ailk_Bljk_SB", ("M", "N", "Batch", "K"), Configuration({"DataType": "s"}))
TARGET = Target(
    "fake", "fake:0", "a fake device", "CPU", "none", "1.0", 4, 256, 32768, 1 << 30, 1 << 28, 1 << 20, 8, True
)


def entry(key, seconds):
    solution = Solution(GEMM, "tiled", Configuration({"Tile": 8}))
    measurement = Measurement(Outcome.OK, samples=(seconds,), estimate=Estimate(seconds, seconds, seconds, 1))
    return StoreEntry(
        key, "screen", "identity", solution, Problem(GEMM, (8, 8, 1, 8)), TARGET, "compiler 1", measurement
    )


def _writer(path, mark, start, counts):  # type: ignore[no-untyped-def]
    start.wait()  # both open a file that does not exist yet, at the same time
    with Store.open(path) as store:
        counts.put((mark, sum(store.commit([entry(str(key), mark)]) for key in range(150))))


def test_two_processes_that_write_the_same_keys_leave_each_once(location_of):
    spawn = multiprocessing.get_context("spawn")
    start, counts = spawn.Barrier(2), spawn.Queue()
    writers = [spawn.Process(target=_writer, args=(location_of(), mark, start, counts)) for mark in (1.0, 2.0)]
    for writer in writers:
        writer.start()
    new = dict(counts.get(timeout=60) for _ in writers)
    for writer in writers:
        writer.join(60)
    with Store.open(location_of()) as store:
        kept = [found.measurement.samples[0] for found in store.entries()]
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len(kept) == 150
    assert {mark: kept.count(mark) for mark in (1.0, 2.0)} == new, "each process was told truly which were new"


HOLDER = """
import sys
from tunesmith.store import Store
def hold(connection):
    print("holding", flush=True)
    sys.stdin.readline()
Store.open(sys.argv[1])._database.write(hold)
"""


def test_a_commit_waits_for_another_process_that_is_writing_and_a_reader_does_not(location_of):
    with Store.open(location_of()) as store, ThreadPoolExecutor(1) as pool:
        command = [sys.executable, "-c", HOLDER, str(location_of())]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "holding\n"
            commit = pool.submit(store.commit, [entry("a", 1.0)])
            with pytest.raises(TimeoutError):
                commit.result(timeout=0.3)
            assert store.rounds(["a"]) == {"a": {}}
            process.stdin.write("let go\n")
            process.stdin.flush()
            assert commit.result() == 1


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from test_store_processes import entry
from tunesmith.store import Store
store = Store.open(sys.argv[1])
key = int(sys.argv[2])
while True:
    store.commit([entry(f"{{key}}/{{part}}", float(key)) for part in range(3)])
    print(key, flush=True)
    key += 1
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_kill_9_loses_nothing_committed_and_leaves_no_half_commit(location_of):
    chance = random.Random(7)
    program = WRITER.format(tests=str(Path(__file__).parent))
    reported: set[int] = set()
    for life in range(6):
        command = [sys.executable, "-c", program, str(location_of()), str(1000 * life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 12)):
                reported.add(int(process.stdout.readline()))
            os.kill(process.pid, signal.SIGKILL)
            reported.update(int(line) for line in process.stdout if line.endswith("\n"))
    with Store.open(location_of()) as store:
        kept = [found.key for found in store.entries()]
    parts: dict[int, int] = {}
    for key in kept:
        number = int(key.split("/")[0])
        parts[number] = parts.get(number, 0) + 1
    assert reported <= set(parts), "every commit that was reported is there"
    assert set(parts.values()) == {3}, "a commit is there whole or not at all"
    assert len(parts) - len(reported) <= 6, "at most the commit under way at each kill was not reported"


def test_a_store_that_another_process_makes_while_this_one_looks_is_opened(tmp_path, monkeypatch):
    """The marks of a store are read one by one, and must be of one state."""
    path, read, others = tmp_path / "store.sqlite", sqlite._pragma, [Store.open]

    def slowly(connection, name):
        if name == "application_id" and others:
            others.pop()(path).close()
        return read(connection, name)

    monkeypatch.setattr(sqlite, "_pragma", slowly)
    with Store.open(path) as store:
        assert store.commit([entry("a", 1.0)]) == 1
    assert others == []
