"""A store of every released schema version is read as it is, and gets today's tables when it is opened to write."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from test_store import START, entry, timed

from tunesmith.records import Cost
from tunesmith.store import RunState, Store, copy_store
from tunesmith.store.migrations import MIGRATIONS, OLDEST
from tunesmith.store.schema import SCHEMA_VERSION
from unprivileged import unwritable

RELEASED = Path(__file__).parent / "released"
VERSIONS = range(OLDEST, SCHEMA_VERSION)


def released(version, folder):
    """A store that the released version wrote."""
    path = folder / f"version_{version}.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript((RELEASED / f"version_{version}.sql").read_text())
    connection.close()
    return path


def tables(path):
    """Every table's columns with their types, defaults and keys, the indices, and the marks of the file."""
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {name: {row[1:] for row in connection.execute(f"PRAGMA table_info({name})")} for name in names}
    indices = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    marks = [connection.execute(f"PRAGMA {mark}").fetchone()[0] for mark in ("user_version", "application_id")]
    connection.close()
    return columns, indices, marks


def dump(path):
    connection = sqlite3.connect(path)
    text = "\n".join(connection.iterdump())
    connection.close()
    return text


def facts(store):
    """All that the store's methods give."""
    runs = store.runs()
    entries = list(store.entries())
    assert store.best().keys() == {found.problem for found in entries}
    return (
        entries,
        store.rounds([found.key for found in entries]),
        store.failures(),
        store.cost(),
        runs,
        [store.steps(run.id) for run in runs],
        store.devices(),
    )


def test_there_is_a_migration_and_a_recorded_store_for_every_released_version():
    assert set(MIGRATIONS) == set(VERSIONS)
    assert {path.name for path in RELEASED.iterdir()} == {f"version_{version}.sql" for version in VERSIONS}


@pytest.mark.parametrize("version", VERSIONS)
def test_opening_a_released_version_to_write_makes_todays_tables_and_keeps_every_fact(version, tmp_path):
    path = released(version, tmp_path)
    with Store.read(path) as store:
        before = facts(store)
    with Store.open(path) as store:
        assert facts(store) == before
        assert store.commit([entry("new", "full", timed(1.0))]) == 1
    Store.open(tmp_path / "today.sqlite").close()
    assert tables(path) == tables(tmp_path / "today.sqlite")
    entries, _, _, cost, runs, steps, _ = before
    assert {found.round.split("/")[0] for found in entries} == {"full", "confirm", "anchor"}
    assert len(entries) == 5
    assert cost != Cost()
    assert [(run.state, run.start.remeasures) for run in runs] == [
        (RunState.FINISHED, False),
        (RunState.FINISHED, True),
    ]
    assert [len(of_run) for of_run in steps] == [2, 2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_released_version_that_is_only_read_stays_as_it_is(version, tmp_path):
    path = released(version, tmp_path)
    before = dump(path)
    with Store.read(path) as store:
        facts(store)
    assert dump(path) == before
    assert tables(path)[2][0] == version
    with unwritable(tmp_path) as folder, Store.open(folder / path.name) as store:
        assert len(facts(store)[0]) == 5, "a store that may not be written is read, even if it is opened to write"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_released_version_can_be_copied_without_being_changed(version, tmp_path, location_of):
    path = released(version, tmp_path)
    before = dump(path)
    with Store.read(path) as old, Store.open(location_of()) as new:
        assert copy_store(old, new).measurements == 10
        assert facts(new) == facts(old)
    assert dump(path) == before


KILLED = """
import os, signal, sys
from tunesmith.store import Store, migrations
migrate = migrations.MIGRATIONS[int(sys.argv[2])]
def killed(connection):
    migrate(connection)
    connection.exec_driver_sql("PRAGMA user_version = 99")
    os.kill(os.getpid(), signal.SIGKILL)
migrations.MIGRATIONS = {**migrations.MIGRATIONS, int(sys.argv[2]): killed}
Store.open(sys.argv[1])
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kill_in_the_middle_of_a_migration_leaves_the_version_as_it_was(version, tmp_path):
    path = released(version, tmp_path)
    before = dump(path), tables(path)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(version)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (dump(path), tables(path)) == before
    with Store.open(path) as store:
        assert len(list(store.entries())) == 5
    assert tables(path)[2][0] == SCHEMA_VERSION


OPENED = """
import sys
from tunesmith.store import Store
sys.stdin.readline()
with Store.open(sys.argv[1]) as store:
    print(len(list(store.entries())))
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_two_processes_may_migrate_one_store_at_once(version, tmp_path):
    path = released(version, tmp_path)
    command = [sys.executable, "-c", OPENED, str(path)]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate("go\n")[0] for process in both] == ["5\n", "5\n"]
    assert [process.returncode for process in both] == [0, 0]


def test_a_measurement_says_who_made_it_and_in_which_run(location_of):
    with Store.open(location_of()) as store:
        store.commit([entry("before", "full", timed(1.0))])
        run = store.begin_run(START)
        store.commit([entry("within", "full", timed(1.0))])
        assert {found.key: found.run for found in store.entries()} == {"before": "", "within": run}
        assert store.made_by([run], ["before", "within", "missing"]) == {("within", "full")}
