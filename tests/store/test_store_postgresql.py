"""What a user is told if a PostgreSQL database cannot be used, and what outlives the end of a server or connection."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import make_url
from test_store import START, entry

from postgresql_server import USER, postgresql_server
from tunesmith.records import UserError
from tunesmith.store import Store, database
from tunesmith.store import postgresql as backend
from tunesmith.store.schema import SCHEMA_VERSION, measurements, metadata


@pytest.fixture
def url(postgresql):
    return postgresql.fresh()


def refused(url, use=Store.open):
    with pytest.raises(UserError) as caught:
        use(url).close()
    assert "secret" not in str(caught.value)
    assert caught.value.location == url.replace(":secret@", "@")
    return f"{caught.value.what}; {caught.value.remedy}"


def test_another_database_or_user_is_named_with_the_program_that_makes_it(postgresql):
    missing = postgresql.database.replace("/postgres?", "/missing?").replace("@", ":secret@")
    assert "the database does not exist" in refused(missing)
    assert "createdb" in refused(missing)
    assert "createuser" in refused(postgresql.database.replace(USER, "nobody_here"))


def test_a_server_that_is_not_there_is_not_waited_for(monkeypatch, tmp_path):
    monkeypatch.setattr(database.time, "sleep", lambda seconds: pytest.fail("it waits"))
    assert "see that the server runs" in refused(f"postgresql://me:secret@/db?host={tmp_path}")
    assert "see that the server runs" in refused("postgresql://me:secret@127.0.0.1:1/db")


@pytest.mark.parametrize("url", ["postgresql://me:secret@host:port/db", "postgresql://me@[::1/db"])
def test_a_url_that_makes_no_sense(url):
    assert "postgresql://USER@HOST:PORT/DATABASE" in refused(url)


@contextmanager
def password_needed(server):
    """A context in which the server asks for a password."""
    admitted = server.folder / "data" / "pg_hba.conf"
    before = admitted.read_text()
    server.execute(f"ALTER USER {USER} PASSWORD 'secret'")
    admitted.write_text("local all all scram-sha-256\n")
    server.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        admitted.write_text(before)
        with_password = server.database.replace("@", ":secret@")
        server.execute("SELECT pg_reload_conf()", with_password)


def test_a_password_is_taken_from_the_url_or_the_environment_and_never_shown(postgresql, url, monkeypatch):
    with password_needed(postgresql):
        monkeypatch.delenv("PGPASSWORD", raising=False)
        for wrong, what in ((url, "a password is needed"), (url.replace("@", ":wrong@"), "the password is wrong")):
            with pytest.raises(UserError, match=what) as caught:
                Store.open(wrong)
            assert "PGPASSWORD" in caught.value.remedy
            assert ":wrong" not in str(caught.value)
        with Store.open(url.replace("@", ":secret@")) as store:
            assert store.location == url
            assert "secret" not in repr(vars(store._database)).replace("'", "")
        monkeypatch.setenv("PGPASSWORD", "secret")
        Store.read(url).close()


def test_another_programs_tables_are_left_alone(postgresql, url):
    postgresql.execute("CREATE TABLE songs (title TEXT)", url)
    for use in (Store.open, Store.read):
        assert "another program has tables there" in refused(url, use)
    assert "search_path" in refused(url)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    assert postgresql.execute(tables, url) == [("songs",)]


def test_a_schema_that_is_not_there(postgresql):
    assert "make the schema" in refused(f"{postgresql.database}&options=-csearch_path%3Dmissing")


def test_reading_makes_no_tables(postgresql, url):
    assert "there is no store" in refused(url, Store.read)
    assert postgresql.execute("SELECT 1 FROM pg_tables WHERE schemaname = current_schema()", url) == []


def test_a_store_that_is_open_to_read_cannot_be_written(url):
    with Store.open(url) as store:
        store.commit([entry("a")])
    with Store.read(url) as store:
        for write in (lambda: store.commit([entry("b")]), lambda: store.begin_run(START)):
            with pytest.raises(UserError, match="the store cannot be written"):
                write()
        assert [row.key for row in store.entries()] == ["a"]


@pytest.mark.parametrize(("version", "remedy"), [(99, "newer tunesmith"), (0, "older tunesmith")])
def test_another_schema(postgresql, url, version, remedy):
    Store.open(url).close()
    postgresql.execute(f"DELETE FROM tunesmith_schema; INSERT INTO tunesmith_schema VALUES ({version})", url)
    assert remedy in refused(url)
    assert remedy in refused(url, Store.read)


def test_a_server_that_is_too_old_and_texts_that_are_not_unicode(monkeypatch, postgresql, url):
    monkeypatch.setattr(backend, "OLDEST_SERVER", 99)
    assert "use PostgreSQL 99 or newer" in refused(url)
    monkeypatch.undo()
    postgresql.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    assert "--encoding UTF8" in refused(postgresql.database.replace("/postgres?", "/latin?"))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE measurements SET samples = '\\x00'", "damaged row"),
        ("UPDATE measurements SET seconds = -1", "damaged row"),
        ("UPDATE measurements SET outcome = 'perhaps'", "damaged row"),
        ("UPDATE documents SET text = '[]'", "damaged row"),
        ("DROP TABLE measurements", "a table is missing"),
        ("ALTER TABLE measurements DROP COLUMN samples", "a column is missing"),
    ],
)
def test_a_damaged_store_is_the_users_to_mend(postgresql, url, damage, what):
    with Store.open(url) as store:
        store.commit([entry("a")])
        postgresql.execute(damage, url)
        with pytest.raises(UserError, match=what):
            list(store.entries())


def test_a_user_without_rights_is_told_so(postgresql, url):
    Store.open(url).close()
    schema = url.rpartition("%3D")[2]
    postgresql.execute(f"CREATE USER guest_{schema}; GRANT USAGE ON SCHEMA {schema} TO guest_{schema}")
    assert "permission was denied" in refused(url.replace(f"{USER}@", f"guest_{schema}@"))


STATES = {
    "53100": "the database's disk is full",
    "25006": "the store cannot be written",
    "57P01": "the connection to the database was lost",
    "08006": "the connection to the database was lost",
    "53300": "too many connections",
    "53200": "short of something",
    "55P03": "another process holds the store",
    "40P01": "other transactions were in the way",
    "XX001": "the database is damaged",
    "58030": "the database's disk failed",
    "57014": "the server cancelled a statement",
}


@pytest.mark.parametrize("state", STATES)
def test_an_error_of_the_server_says_what_to_do(monkeypatch, url, state):
    monkeypatch.setattr(database, "RETRY_PAUSES", ())

    def fail(connection):
        connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'it failed' USING ERRCODE = '{state}'; END $$")

    with Store.open(url) as store, pytest.raises(UserError) as caught:
        store._database.write(fail)
    assert STATES[state] in caught.value.what
    assert "it failed" in caught.value.what


@pytest.mark.parametrize(("state", "attempts"), [("40P01", 3), ("57P01", 3), ("08006", 3), ("53100", 1), ("55P03", 1)])
def test_a_transaction_begins_again_where_that_may_help(monkeypatch, url, state, attempts):
    begun = []
    monkeypatch.setattr(database, "RETRY_PAUSES", (0.0, 0.0))

    def fail(connection):
        begun.append(connection)
        connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'it failed' USING ERRCODE = '{state}'; END $$")

    with Store.open(url) as store, pytest.raises(UserError):
        store._database.write(fail)
    assert len(begun) == attempts


def end_other_sessions(server, url):
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()", url)


def test_a_connection_that_ended_meanwhile_is_made_again(postgresql, url):
    with Store.open(url) as store:
        store.commit([entry("a")])
        end_other_sessions(postgresql, url)
        assert [row.key for row in store.entries()] == ["a"]
        end_other_sessions(postgresql, url)
        assert store.commit([entry("b")]) == 1


def test_a_connection_that_ends_within_a_transaction_leaves_nothing_of_it_and_the_transaction_begins_again(
    postgresql, url
):
    attempts = []
    with Store.open(url) as store:
        row = {"run": "r", "payload": "p"}

        def insert(connection):
            attempts.append(connection)
            connection.execute(metadata.tables["steps"].insert(), [row])
            if len(attempts) == 1:
                end_other_sessions(postgresql, url)
            connection.execute(metadata.tables["steps"].insert(), [row])

        store._database.write(insert)
    assert len(attempts) == 2
    assert postgresql.execute("SELECT count(*) FROM steps", url) == [(2,)]


def test_a_connection_that_ends_in_a_commit_is_no_reason_to_commit_twice(monkeypatch, postgresql, url):
    attempts = []
    with Store.open(url) as store:

        def insert(connection):
            attempts.append(connection)
            connection.execute(metadata.tables["steps"].insert(), [{"run": "r", "payload": "p"}])
            end_other_sessions(postgresql, url)

        with pytest.raises(UserError, match="the connection to the database was lost"):
            store._database.write(insert)
    assert len(attempts) == 1


def test_what_was_committed_outlives_a_crash_of_the_server_and_the_store_goes_on():
    with postgresql_server() as server:
        url = server.fresh()
        with Store.open(url) as store:
            store.commit([entry("a")])
            server.stop()
            with pytest.raises(UserError, match=r"cannot be reached|was lost"):
                store.commit([entry("b")])
            with ThreadPoolExecutor(1) as pool:
                commit = pool.submit(store.commit, [entry("c")])
                with pytest.raises(TimeoutError):
                    commit.result(timeout=0.3)
                server.start()  # in the main thread, since the server ends with the thread that started it
                assert commit.result() == 1, "the store waits for a server that starts again"
            assert [row.key for row in store.entries()] == ["a", "c"]


def test_ids_are_in_the_order_of_commits_whoever_commits(postgresql, url):
    """A transaction that takes its ids first and commits last would be missed by a reader that is past them."""
    with Store.open(url) as first, Store.open(url) as second, Store.read(url) as reader:
        begun, done = threading.Event(), threading.Event()

        def slow(connection):
            connection.execute(measurements.select().limit(1))
            begun.set()
            assert not done.wait(0.5), "the other writer waits"

        writer = threading.Thread(target=first._database.write, args=(slow,))
        writer.start()
        begun.wait()

        def commit():
            second.commit([entry("b")])
            done.set()

        other = threading.Thread(target=commit)
        other.start()
        assert list(reader.entries()) == [], "a reader does not wait"
        writer.join()
        other.join()
        first.commit([entry("c")])
        assert [row.key for row in reader.entries()] == ["b", "c"]


def test_stores_of_two_schemas_do_not_hold_each_other(postgresql):
    with Store.open(postgresql.fresh()) as store_a, Store.open(postgresql.fresh()) as store_b:
        assert store_a._database.write(lambda connection: store_b.commit([entry("a")])) == 1


def test_the_tables_have_todays_version(postgresql, url):
    Store.open(url).close()
    Store.open(url).close()
    assert postgresql.execute("SELECT version FROM tunesmith_schema", url) == [(SCHEMA_VERSION,)]


def test_settings_of_the_url_go_before_our_own(monkeypatch):
    made = []
    monkeypatch.setattr(backend, "create_engine", lambda url, connect_args, **pool: made.append(connect_args))
    backend._engine(make_url("postgresql://me@host/db?connect_timeout=3"), "a store")
    assert made == [{"keepalives_idle": 30, "tcp_user_timeout": 60_000, "prepare_threshold": None}]


WITHOUT = """
import sys
sys.modules["psycopg"] = None
from tunesmith.records import UserError
from tunesmith.store import Store
try:
    Store.open("postgresql://me:secret@host/db")
except UserError as error:
    print(error)
"""


def test_without_the_extra_the_remedy_is_to_install_it():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == (
        "postgresql://me@host/db: needs psycopg, which is not installed; pip install 'tunesmith[postgresql]'\n"
    )


UNUSED = """
import sys
from tunesmith.cli.app import app
from tunesmith.session import tune
from tunesmith.store import Store
Store.open(sys.argv[1]).close()
unused = ("psycopg", "sqlalchemy.dialects.postgresql", "tunesmith.store.postgresql")
print([name for name in sys.modules if name.startswith(unused)])
"""


def test_psycopg_is_imported_by_nothing_that_does_not_use_it(tmp_path):
    done = subprocess.run([sys.executable, "-c", UNUSED, tmp_path / "s"], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
