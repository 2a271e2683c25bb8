"""A store with a value changed: the command that reads it does its work or says what is wrong, within seconds."""

from __future__ import annotations

import contextlib
import json
import math
import random
import shutil
import sqlite3
from functools import partial

import pytest
from test_file_fuzz import QUICK, THOROUGH, run, selected, survives

from mutated_files import changed
from random_stores import random_store

CELLS_OF_A_STORE = (
    None,
    -1,
    0,
    1,
    1.5,
    -0.5,
    math.inf,
    1e-320,
    1e308,
    2**62,
    "",
    "x",
    "{}",
    "[]",
    "[" * 5000,
    b"",
    b"\xff",
)


def change_store(path, chance):
    """Change one column of some rows, or one value of a document."""
    with sqlite3.connect(path) as connection:
        table = chance.choice(("measurements", "measurements", "documents", "documents", "run_events"))
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "id"]
        column = chance.choice(columns)
        (number,) = connection.execute(f"SELECT min(rowid) + abs(random()) % count(*) FROM {table}").fetchone()
        (before,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (number,)).fetchone()
        value = chance.choice(CELLS_OF_A_STORE)
        if column in ("text", "payload") and chance.random() < 0.8:
            value = json.dumps(changed(json.loads(before), chance))
        with contextlib.suppress(sqlite3.IntegrityError, OverflowError):
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, number))
    connection.close()


def fuzz_store(folder, seeds):
    good = random_store(folder / "good")
    for seed in seeds:
        own = folder / str(seed)
        shutil.copytree(good, own)
        change_store(own / "measurements.sqlite", random.Random(f"store {seed}"))

        uses = (selected, partial(run, "show"), partial(run, "show", "--json"))
        for use in uses:
            survives(use, own, f"store, seed {seed}")
        shutil.rmtree(own)


def test_a_changed_store_is_used_or_refused(tmp_path):
    fuzz_store(tmp_path, range(QUICK))


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_a_thousand_changed_stores_are_used_or_refused(tmp_path):
    fuzz_store(tmp_path, range(QUICK, THOROUGH))
