"""Whole runs of the command line on the fake device, for the tests that tune, stop and kill."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from forked import run_forked
from forked_server import MARK, serve_by_fork
from shared_programs import share_programs
from tunesmith.cli.main import main
from tunesmith.records import _registry
from tunesmith.store import FolderStore
from tunesmith.toolchains.cache import FOLDER_VARIABLE

FAKE = """
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
            - Exact: [96, 96, 64]
        - WorkGroup: [[16, 8, 1], [8, 16, 1]]
      ForkParameters:
        - ThreadTile: [[2, 2], [8, 8]]
      BenchmarkForkParameters:
        - VectorWidth: [1, 4]
      JoinParameters: [MacroTile]
      BenchmarkJoinParameters:
        - LoopUnroll: [8, 16]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [32, 32, 32]
            - Exact: [128, 64, 32]
"""
"""All six phases in few cells. The two work-groups are equally fast, so finalists are measured again, interleaved."""

FAKE_STEPS = [
    "01_CM_WorkGroup",
    "02_Fork_ThreadTile",
    "03_BF_VectorWidth",
    "04_Join_MacroTile",
    "05_BJ_LoopUnroll",
    "06_Final",
]


AT_START = (
    "PYTHONPATH",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "OPENBLAS_NUM_THREADS",
    FOLDER_VARIABLE,
)
"""Variables that Python or a library reads when it starts, and the one that names the cache folder."""

STARTED = {name: os.environ.get(name) for name in AT_START}
"""Their values while the tests are collected, before a test changes one."""


def fake_file(folder: Path, text: str = FAKE, name: str = "fake.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "tunesmith.cli.main", *map(str, arguments)]


def environment(mark: str = "", **variables: object) -> dict[str, str]:
    """This process's own, without what would change a run, with a mark and further variables. The user's cache stays as
    it is (`conftest.py`)."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TUNESMITH_") or name == FOLDER_VARIABLE
    }
    return {**own, MARK: mark or uuid.uuid4().hex, **{name: str(value) for name, value in variables.items()}}


def tunesmith(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a process of its own; its output is as a pipe gets it.

    The tests' server forks the process, since a third of a short command's time is for its imports, and it shares
    machine code with other tests. If a variable differs that acts when Python starts or says where machine code is
    kept, a new Python executes the command (the variable may differ in this process, too).
    """
    env = dict(env or environment())
    if any(env.get(name) != value for name, value in STARTED.items()):
        return subprocess.run(command(*arguments), capture_output=True, text=True, env=env)
    return run_forked(execute, *map(str, arguments), env=env)


def execute(*words: str) -> None:
    """Execute a command in this process, with a server that is its fork."""
    share_programs()
    serve_by_fork()
    execute_alone(*words)


def tunesmith_with(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a forked process with a folder in front of its path, as Python has it of PYTHONPATH.

    Its benches start new Python processes, with that variable.
    """
    return run_forked(execute_with, str(folder), *map(str, arguments), env=environment_with(folder))


def environment_with(folder: Path) -> dict[str, str]:
    """The environment of a process that has a folder in front of its path."""
    return environment(PYTHONPATH=os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])))


def execute_with(folder: str, *words: str) -> None:
    """Execute a command in this process, which looks for the distributions of a folder too."""
    sys.path.insert(0, folder)
    _registry.installed.cache_clear()
    share_programs()
    execute_alone(*words)


def execute_alone(*words: str) -> None:
    """Execute a command in this process, which starts a server of its own and shares no machine code."""
    sys.argv = ["tunesmith", *words]
    main()


def tune_json(file: Path, folder: Path, *options: object, device: str = "fake:GPU:8", code: int = 0) -> dict[str, Any]:
    """Tune to the end and give what `--json` prints."""
    done = tunesmith("tune", file, "-o", folder, "--device", device, "--json", *options)
    return document(done, code)


def document(done: subprocess.CompletedProcess[str], code: int = 0) -> dict[str, Any]:
    """What a run that came to its end with `code` printed."""
    assert done.returncode == code, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def steady_or_drifted(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a run on a real device printed. It may say that the machine's speed drifted meanwhile, and nothing else."""
    if done.returncode == 0:
        return document(done)
    found = document(done, code=1)
    assert found["look_at"], "code 1 has a reason"
    assert all(sentence.startswith("the anchor drifted to ") for sentence in found["look_at"]), found["look_at"]
    return found


Key = tuple[str, str]
Row = Mapping[str, Any]


def rows(folder: Path) -> dict[Key, Row]:
    """Every measurement in a run's store, all columns as they lie there, by key and round in the order of commits.

    A folder without a store has none.
    """
    kept = FolderStore.of(folder)
    if kept is None:
        return {}
    query = "SELECT * FROM measurements ORDER BY id"
    found = _of_postgresql(kept.location.url, query) if kept.location.url else _of_sqlite(kept.location.path, query)
    by_key = {(row["key"], row["round"]): row for row in found}
    assert len(by_key) == len(found), "key and round are unique"
    return by_key


def _of_sqlite(path: Path | None, query: str) -> list[Row]:
    assert path is not None
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        found: list[Row] = [dict(row) for row in connection.execute(query)]
    connection.close()
    return found


def _of_postgresql(url: str, query: str) -> list[Row]:
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(url, row_factory=dict_row) as connection:
        return list(connection.execute(query.encode()).fetchall())


def results(folder: Path) -> dict[str, str]:
    """Every CSV and logic that a run left, by its path; the logic without the line that says when it was written."""
    found = {}
    for path in sorted((*folder.glob("tables/**/*"), *folder.glob("logic/**/*"))):
        if path.is_file():
            lines = path.read_text().splitlines()
            found[str(path.relative_to(folder))] = "\n".join(line for line in lines if "date:" not in line)
    return found


def processes(mark: str) -> Iterator[int]:
    """Living processes that carry a run's mark: among their variables, or in the name of an open file."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _carries(entry, f"{MARK}={mark}"):
            yield int(entry.name)


def _carries(process: Path, mark: str) -> bool:
    with suppress(OSError):  # it is gone meanwhile, or somebody else's
        if mark.encode() in (process / "environ").read_bytes():
            return True
        for descriptor in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if mark in str(descriptor.readlink()):
                    return True
    return False


def orphans(mark: str, patience: float = 5.0) -> list[int]:
    """Processes of a run that are left after a short while; the kernel needs a moment to bury them."""
    deadline = time.monotonic() + patience
    while (left := list(processes(mark))) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left
