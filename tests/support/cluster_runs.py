"""Whole runs on several devices of this host, for the tests that tune and kill on a cluster."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from forked import code_of, started
from forked_server import MARK
from tuning_runs import command, environment, execute, fake_file, processes

MANY_SIZES = """
GlobalParameters:
  CompileProcesses: 1
  ConfirmBlocks: 7
  WarmUpSeconds: 0.01
  SamplingSeconds: 0.02
BenchmarkProblems:
  - - OperationType: GEMM
      DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkCommonParameters:
        - ProblemSizes:
            - Range: [[32, 32, 96], 0, 0]
        - WorkGroup: [[16, 8, 1], [8, 16, 1]]
      ForkParameters:
        - ThreadTile: [[2, 2], [8, 8]]
      BenchmarkForkParameters:
        - VectorWidth: [1, 4]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Range: [[32, 32, 160], 0, 0]
            - Exact: [128, 64, 32]
"""
"""A few steps over several sizes. The two work-groups are equally fast on squares, so finalists are measured again."""

TWO_TYPES = MANY_SIZES + MANY_SIZES[MANY_SIZES.index("  - - OperationType") :].replace(
    "DataType: s", "DataType: s\n      TransposeA: True"
)
"""The same for two problem types, which several devices take through their steps together."""

VICTIMS = ("ts-device", "ts-scheduler", "parent", "ts-compiler")


@dataclass(frozen=True)
class ClusterKill:
    """A signal for one process of a run when its store has a certain share of an undisturbed run's rows."""

    number: int
    victim: str
    signal: signal.Signals
    share: float

    @staticmethod
    def draw(number: int, seed: int = 9, stops: bool = True) -> ClusterKill:
        drawn = random.Random(f"{seed} {number}")
        # A process that hangs is noticed after some 20 seconds, so there are few of them. A stopped command waits.
        stop = stops and number % 10 == 9
        victim = VICTIMS[number % len(VICTIMS)]
        how = signal.SIGSTOP if stop and victim != "parent" else signal.SIGKILL
        return ClusterKill(number, victim, how, drawn.random())

    def __str__(self) -> str:
        return f"{self.number}-{self.victim.removeprefix('ts-')}-{self.signal.name}-{self.share:.2f}"


def roles(mark: str) -> Iterator[tuple[int, str]]:
    """The living processes of a run with the names that they have given themselves."""
    for process in processes(mark):
        with suppress(OSError):
            yield process, Path(f"/proc/{process}/comm").read_text().strip()


COUNT = "SELECT COUNT(*) FROM measurements"


def row_count(folder: Path, url: str = "") -> int:
    """Rows of the run's store, which may not be made yet; `url` is that of a database."""
    if url:
        import psycopg

        with suppress(psycopg.Error), psycopg.connect(url) as database:
            (count,) = database.execute(COUNT.encode()).fetchone() or (0,)
            return int(count)
        return 0
    with suppress(sqlite3.Error):
        connection = sqlite3.connect(f"file:{folder / 'measurements.sqlite'}?mode=ro", uri=True)
        try:
            return int(connection.execute(COUNT).fetchone()[0])
        finally:
            connection.close()
    return 0


@dataclass
class KilledRun:
    """A run that was started and disturbed: its exit code, what it printed, and whether the kill happened in time."""

    code: int
    out: str
    err: str
    happened: bool
    mark: str


def killed_run(
    kill: ClusterKill, arguments: list[object], folder: Path, rows: int, forked: bool = True, url: str = ""
) -> KilledRun:
    """Start a command, in a fork of the tests' server or as a new Python, and send the signal once its store has that
    share of `rows` rows; `url` is the store's, if it is a database."""
    env = environment()

    def counted() -> int:
        return row_count(folder, url)

    if forked:
        with started(execute, *map(str, arguments), env=env) as (run, call):
            happened = _struck(kill, run.pid, lambda: run.has_message, env[MARK], counted, rows)
            return KilledRun(code_of(run), call.out.read_text(), call.err.read_text(), happened, env[MARK])
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        new = subprocess.Popen(command(*arguments), stdout=out, stderr=err, env=env)
        happened = _struck(kill, new.pid, lambda: new.poll() is not None, env[MARK], counted, rows)
        out.seek(0), err.seek(0)
        return KilledRun(new.wait(), out.read(), err.read(), happened, env[MARK])


def _struck(
    kill: ClusterKill, run: int, ended: Callable[[], bool], mark: str, counted: Callable[[], int], rows: int
) -> bool:
    """Wait for a command's end, and send the signal meanwhile; whether that happened."""
    happened = False
    while not ended():
        if not happened and counted() >= max(1, int(kill.share * rows)):
            happened = _strike(kill, run, mark)
        time.sleep(0.01)
    return happened


def _strike(kill: ClusterKill, run: int, mark: str) -> bool:
    if kill.victim == "parent":
        os.kill(run, kill.signal)
        return True
    living = sorted(process for process, name in roles(mark) if name == kill.victim)
    if not living:
        return False
    with suppress(ProcessLookupError):
        os.kill(random.Random(kill.number).choice(living), kill.signal)
    return True


def execute_in_temporary(*words: str) -> None:
    """Execute a command in this process, a fork, which asks the variables anew where the temporary folder is."""
    tempfile.tempdir = None
    execute(*words)


def many_sizes(folder: Path) -> Path:
    return fake_file(folder, MANY_SIZES, "many_sizes.yaml")


def two_types(folder: Path) -> Path:
    return fake_file(folder, TWO_TYPES, "two_types.yaml")
