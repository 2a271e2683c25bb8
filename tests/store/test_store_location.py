"""A store is named by a path or a URL, a folder remembers its store, and no password is ever shown."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from tunesmith.records import UserError
from tunesmith.store import FILE_NAME, POINTER, FolderStore, Store, StoreLocation, remember, store_for, store_named
from tunesmith.store import without_password as bare

POSTGRESQL = "postgresql://me@host/db"


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("out/s.sqlite", "out/s.sqlite"),
        ("/abs/s", "/abs/s"),
        ("sqlite:///out/s", "out/s"),
        ("sqlite:////abs/s", "/abs/s"),
        ("SQLite:////abs/s", "/abs/s"),
        (Path("sqlite:/x"), "sqlite:/x"),
        ("C:odd name", "C:odd name"),
        (":memory:", ":memory:"),
    ],
)
def test_a_path_or_an_sqlite_url_is_a_file(named, path):
    assert StoreLocation.of(named) == StoreLocation(Path(path))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "PostgreSQL"])
def test_all_names_of_postgresqls_scheme_are_one(scheme):
    assert StoreLocation.of(f"{scheme}://me@host/db") == StoreLocation(url=POSTGRESQL)


@pytest.mark.parametrize("named", ["mysql://me:pw@host/db", "https://host/db", "postgresql+asyncpg://host/db"])
def test_another_scheme_is_refused_with_those_that_work(named):
    with pytest.raises(UserError, match=r"postgresql://USER@HOST/DATABASE") as caught:
        StoreLocation.of(named)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("named", ["", "sqlite://", "sqlite:///"])
def test_a_store_has_a_name(named):
    with pytest.raises(UserError):
        StoreLocation.of(named)


PASSWORDS = {
    "postgresql://me:secret@host/db": "postgresql://me@host/db",
    "postgres://me:secret@host:5432/db?sslmode=require": "postgres://me@host:5432/db?sslmode=require",
    "--store=postgresql+psycopg://me:se:cr/et@host/db": "--store=postgresql+psycopg://me@host/db",
    "postgresql://host/db?user=me&password=secret": "postgresql://host/db?user=me",
    "postgresql://host/db?password=secret&user=me": "postgresql://host/db?user=me",
    "postgresql://host/db?password=secret": "postgresql://host/db",
    "postgresql://host/db?sslpassword=secret&PASSWORD=secret&a=b": "postgresql://host/db?a=b",
    "postgresql:/me:secret@host/db": "postgresql:/me@host/db",
    "postgresql://:secret@host/db": "postgresql://@host/db",
    "postgresql://me@host:5432/db": "postgresql://me@host:5432/db",
    "mysql://me:secret@host/db": "mysql://me@host/db",
    "/a/path:with@signs": "/a/path:with@signs",
}


@pytest.mark.parametrize("text", PASSWORDS)
def test_a_text_loses_its_passwords_and_nothing_else(text):
    assert bare(text) == PASSWORDS[text]


def test_a_location_shows_no_password_however_it_is_printed():
    location = StoreLocation.of("postgresql://me:secret@host/db?sslpassword=secret")
    store = FolderStore(location, "id")
    assert all("secret" not in text for text in (str(location), repr(location), repr(store), f"{location}"))
    assert pickle.loads(pickle.dumps(location)).url == location.url


def test_a_new_folder_keeps_its_measurements_in_a_file_of_its_own(tmp_path):
    assert FolderStore.of(tmp_path) is None
    assert store_for(tmp_path, None) == FolderStore(StoreLocation(tmp_path / FILE_NAME))
    assert store_for(tmp_path, str(tmp_path / FILE_NAME)).folder == ""
    assert store_named(str(tmp_path)) == FolderStore(StoreLocation(tmp_path / FILE_NAME))


def test_a_folder_remembers_a_store_that_is_elsewhere_without_its_password(tmp_path, monkeypatch):
    secret = "postgresql://me:secret@host/db"
    made = store_for(tmp_path, secret)
    remember(tmp_path, made)
    assert "secret" not in (tmp_path / POINTER).read_text()
    assert json.loads((tmp_path / POINTER).read_text()) == {"store": POSTGRESQL, "folder": made.folder}
    known = FolderStore.of(tmp_path)
    assert known == FolderStore(StoreLocation(url=POSTGRESQL), made.folder)
    assert store_for(tmp_path, None) == store_for(tmp_path, POSTGRESQL) == known
    assert store_for(tmp_path, secret) == made, "a password that is given is used"
    monkeypatch.setenv("TUNESMITH_STORE", secret)
    assert FolderStore.of(tmp_path) == made, "and one in the environment, for the same store"
    monkeypatch.setenv("TUNESMITH_STORE", "postgresql://me:secret@other/db")
    assert FolderStore.of(tmp_path) == known
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert FolderStore.of(moved) == known


def test_two_folders_of_one_store_have_different_ids(tmp_path):
    assert store_for(tmp_path / "a", POSTGRESQL).folder != store_for(tmp_path / "b", POSTGRESQL).folder


def test_a_file_elsewhere_is_remembered_by_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    remember(tmp_path / "run", store_for(tmp_path / "run", "all.sqlite"))
    monkeypatch.chdir("/")
    found = FolderStore.of(tmp_path / "run")
    assert found is not None
    assert found.location == StoreLocation(tmp_path / "all.sqlite")


def test_a_folder_keeps_the_store_that_it_has(tmp_path):
    """The environment's is for new folders; another one that is asked for is refused, with what to do."""
    Store.open(tmp_path / FILE_NAME).close()
    own = FolderStore(StoreLocation(tmp_path / FILE_NAME))
    assert store_for(tmp_path, None, POSTGRESQL) == own
    with pytest.raises(UserError, match="keeps its measurements in") as caught:
        store_for(tmp_path, "postgresql://me:secret@host/db")
    assert f"tunesmith store copy {tmp_path} {POSTGRESQL}" in caught.value.remedy
    assert store_for(tmp_path / "new", None, POSTGRESQL).location == StoreLocation(url=POSTGRESQL)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"store": 1, "folder": "a"}', '{"store": "x", "folder": ""}', "\xff"])
def test_a_damaged_pointer_is_the_users_to_mend(tmp_path, text):
    (tmp_path / POINTER).write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="does not say where the measurements are"):
        FolderStore.of(tmp_path)
