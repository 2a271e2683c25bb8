"""Kill the parent of a run at random moments: no committed row is lost, changed or repeated, on both kinds of store."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from forked import code_of, started
from tunesmith.store import FILE_NAME
from tuning_runs import Key, Row, document, environment, execute, fake_file, orphans, results, rows, tunesmith

DEVICE, SEED = "fake:GPU:8", 4


@dataclass(frozen=True)
class WholeRun:
    """A run that is not killed: its file, and what it left."""

    file: Path
    rows: dict[Key, Row]
    results: dict[str, str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    file = fake_file(folder)
    document(tunesmith("tune", file, "-o", folder / "run", "--device", DEVICE, "--json"))
    return WholeRun(file, rows(folder / "run"), results(folder / "run"))


@pytest.fixture(params=["sqlite", "postgresql"])
def store_options(request):
    """A function that gives the options of a new folder's run."""
    if request.param == "sqlite":
        return tuple
    server = request.getfixturevalue("postgresql")
    return lambda: ("--store", server.fresh())


def measured(found):
    """Outcome and time of every cell but the anchor, which a resumed run visits once more."""
    return {key: (row["outcome"], row["seconds"]) for key, row in found.items() if not key[1].startswith("anchor")}


def killed(words, count, seconds, folder):
    """Kill a run so many seconds after its store has so many rows; the rows before and after the kill, and whether the
    run had ended by itself."""
    env = environment()
    with started(execute, *map(str, words), env=env) as (run, _):
        while not run.has_message and len(committed(folder)) < count:
            time.sleep(0.03)
        time.sleep(seconds)
        before = committed(folder)
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(run.pid, signal.SIGKILL)
        code = code_of(run)
    assert code in (0, -signal.SIGKILL)
    assert not orphans(env["TUNESMITH_TEST_MARK"])
    return before, committed(folder), code == 0


def committed(folder):
    """The rows of a folder whose store may not be made yet."""
    try:
        return rows(folder)
    except Exception as error:  # a driver's own error for a table that is not there
        if "measurements" in str(error):
            return {}
        raise


def check(whole, store_options, folder, count):
    chance, kills, number = random.Random(SEED), 0, 0
    amounts = set()
    while kills < count:
        number += 1
        own = folder / str(number)
        words = ("tune", whole.file, "-o", own, "--device", DEVICE, *store_options())
        known, ended = {}, False
        while not ended and kills < count:
            # A sixth of the kills comes while the run starts.
            more = chance.randrange(6)
            delay = chance.uniform(0, 0.05 if more else 0.5)
            before, after, ended = killed(words, len(known) + more, delay, own)
            kills += not ended
            for earlier in (known, before):
                assert {key: after.get(key) for key in earlier} == earlier, "no committed row is lost or changed"
            known = after
            amounts.add(len(after))
        last = document(tunesmith(*words, "--json"))
        final = rows(own)
        assert {key: final.get(key) for key in known} == known
        assert last["measured"] == len(final) - len(known), "nothing committed is measured again"
        assert measured(final) == measured(whole.rows)
        assert results(own) == whole.results
        assert (own / FILE_NAME).exists() == (len(words) == 6)
    assert len(amounts) > 1, "the kills are spread over the run"


def test_five_kills_of_the_parent_lose_and_repeat_nothing(whole, store_options, tmp_path):
    check(whole, store_options, tmp_path, 5)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_a_hundred_kills_of_the_parent_lose_and_repeat_nothing(whole, store_options, tmp_path):
    check(whole, store_options, tmp_path, 100)
