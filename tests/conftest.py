"""Fixtures of several test files."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from dataclasses import replace
from importlib import import_module
from textwrap import dedent, indent

import pytest

import few_threads  # noqa: F401  # before NumPy
from described import EXAMPLES, STENCIL
from postgresql_server import postgresql_server
from shared_programs import own_folder, share_programs
from triton_on_host import interpreting
from tunesmith.autotuning.tuning import PRELOADED
from tunesmith.bench import keep_server
from tunesmith.bench.processes import process
from tunesmith.devices import choice
from tuning_space import read

os.environ["TUNESMITH_CACHE"] = f"{os.devnull}/tunesmith"
"""The user's cache stays as it is: there is no such folder, so nothing is kept but where a test names one."""

share_programs()

os.environ.pop("TUNESMITH_STORE", None)
"""Folders of tests keep their own measurements, whatever the user's do."""

sys.modules |= {"tunesmith_native": None, "tunesmith_trees": None}
"""Tests of compiled code build its modules; all others run as if they were not installed."""

os.environ.pop("COLUMNS", None)
"""pytest-xdist sets it; lines are then cut that a pipe gets whole."""

import_module("tunesmith.cli.output")
"""Its consoles keep the width that they are made with, and some tests call commands with another."""


def pytest_collection_finish():
    """The garbage collector leaves out the collected tests, which live until the end."""
    gc.collect()
    gc.freeze()


def start_from_kept_server(spawner, module, *variables):
    """`Spawner.start`, by a server that forks the processes of all benches of this session. No worker waits for the
    next run, since tests look for processes that are left behind."""
    keep_server(("preloaded", *PRELOADED))
    assert process._KEPT is not None
    process._KEPT = replace(process._KEPT, keeps_workers=False)
    return start_process(spawner, module, *variables)


start_process = process.Spawner.start


@pytest.fixture(scope="session", autouse=True)
def kept_server():
    """The first bench starts the session's server. A bench's own server would import everything for each bench."""
    process.Spawner.start = start_from_kept_server
    yield
    process.Spawner.start = start_process
    if (server := process._kept_server()) is not None:
        server.close()


@pytest.fixture
def own_programs(monkeypatch):
    """The machine code of each run has a folder of its own in this test, as users have it."""
    monkeypatch.setattr(choice, "driver_cache", own_folder)


@pytest.fixture
def own_servers(monkeypatch):
    """Benches start servers of their own in this test, as they do in a program that keeps none."""
    monkeypatch.setattr(process.Spawner, "start", start_process)
    monkeypatch.setattr(process, "_KEPT", None)


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server of this process's tests."""
    with postgresql_server() as server:
        yield server


@pytest.fixture(scope="session")
def triton_interpreter():
    """A process of this session's tests, which interprets Triton's functions. It takes 3 seconds to start."""
    with interpreting() as process:
        yield process


@pytest.fixture
def file(tmp_path):
    """Write a tuning file and read it."""

    def write(text, **options):
        path = tmp_path / "file.yaml"
        path.write_text(dedent(text))
        return read(path, **options)

    return write


@pytest.fixture
def group(file):
    """Read one size group of a GEMM; `before` goes in front of BenchmarkProblems."""

    def write(text, problem_type="{DataType: s, TransposeB: False}", before="", **options):
        body = indent(dedent(text).strip() or "{}", " " * 6)
        return file(f"{before}\nBenchmarkProblems:\n  - - {problem_type}\n    -\n{body}\n", **options)

    return write


@pytest.fixture
def copied(tmp_path):
    """The description of the example of a kernel of one's own, with its files, to be edited."""
    for path in EXAMPLES.glob("custom_stencil.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / STENCIL
