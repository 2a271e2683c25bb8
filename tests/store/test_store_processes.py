"""Processes may share a store, and may be killed while they write to it."""

from __future__ import annotations

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from forked import code_of, started
from store_writers import SAME_KEYS, entry, hold, wait_for, write_for_ever, write_same_keys
from tunesmith.store import Store, sqlite
from tuning_runs import environment


def test_two_processes_that_write_the_same_keys_leave_each_once(location_of, tmp_path):
    """Both open a store that does not exist yet, at the same time."""
    marks, go = (1.0, 2.0), tmp_path / "go"
    new = {}
    with ExitStack() as stack:
        writers = {}
        for mark in marks:
            arguments = location_of(), mark, tmp_path / f"ready {mark}", go
            writers[mark] = stack.enter_context(started(write_same_keys, *arguments, env=environment()))
        for mark in marks:
            wait_for(tmp_path / f"ready {mark}")
        go.touch()
        for mark, (writer, call) in writers.items():
            assert code_of(writer) == 0, call.err.read_text()
            new[mark] = int(call.out.read_text())
    with Store.open(location_of()) as store:
        kept = [found.measurement.samples[0] for found in store.entries()]
    assert len(kept) == SAME_KEYS
    assert {mark: kept.count(mark) for mark in marks} == new, "each process was told truly which were new"


def test_a_commit_waits_for_another_process_that_is_writing_and_a_reader_does_not(location_of, tmp_path):
    holding, release = tmp_path / "holding", tmp_path / "release"
    with (
        Store.open(location_of()) as store,
        ThreadPoolExecutor(1) as pool,
        started(hold, location_of(), holding, release, env=environment()) as (holder, _),
    ):
        wait_for(holding)
        commit = pool.submit(store.commit, [entry("a", 1.0)])
        with pytest.raises(TimeoutError):
            commit.result(timeout=0.3)
        assert store.rounds(["a"]) == {"a": {}}
        release.touch()
        assert commit.result() == 1
        assert code_of(holder) == 0


def lines_of(path):
    """The whole lines of a file, which is not there before its process has begun."""
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def test_kill_9_loses_nothing_committed_and_leaves_no_half_commit(location_of):
    chance = random.Random(7)
    reported: set[int] = set()
    for life in range(6):
        with started(write_for_ever, location_of(), 1000 * life, env=environment()) as (writer, call):
            count = chance.randrange(1, 12)
            while len(lines_of(call.out)) < count:
                assert not writer.has_message, call.err.read_text()
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.01))  # anywhere in a commit
            writer.kill()
            assert code_of(writer) == -signal.SIGKILL
            reported.update(map(int, lines_of(call.out)))
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
