"""Runs that keep their measurements in a database, and `tunesmith store`."""

from __future__ import annotations

import json
import signal
import sys
import time

import pytest

from command_line import invoke, invoke_json
from forked import code_of, started
from postgresql_server import postgresql_server
from tunesmith.records import UserError
from tunesmith.session.frame.lock import LOCK
from tunesmith.store import FILE_NAME, POINTER, Store
from tuning_runs import environment, execute, fake_file, results, rows

TINY = """
GlobalParameters: {CompileProcesses: 1, ConfirmBlocks: 5, WarmUpSeconds: 0.001, SamplingSeconds: 0.002}
BenchmarkProblems:
  - - DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      ForkParameters:
        - FakeFault: [FAULT]
        - WorkGroup: [[16, 8, 1], [8, 16, 1]]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [32, 32, 32]
"""


def tune(file, folder, *options):
    return "tune", file, "-o", folder, "--device", "fake:GPU:8", *options


@pytest.fixture
def tiny(tmp_path):
    return fake_file(tmp_path, TINY.replace("FAULT", "none"))


@pytest.fixture
def url(postgresql):
    """A store whose URL has a password, which the server does not ask for."""
    return postgresql.fresh().replace("@", ":secret@")


def test_a_folder_finds_its_store_again_and_nobody_finds_the_password(tiny, tmp_path, url, postgresql, monkeypatch):
    out, words = tmp_path / "out", tune(tiny, tmp_path / "out", "--store", url)
    monkeypatch.setattr(sys, "argv", ["tunesmith", *map(str, words)])
    first = invoke_json(*words)
    assert first["measured"] == len(rows(out)) > 0
    assert not (out / FILE_NAME).exists()
    assert invoke_json(*tune(tiny, out))["measured"] == 0, "the folder knows its store"
    assert invoke_json("show", out)["runs"] == 2
    assert invoke_json("store", "show", out)["runs"] == {"finished": 2}
    assert invoke_json("store", "show", url)["store"] == url.replace(":secret", "")
    dumped = postgresql.execute("SELECT payload FROM run_events", url)
    shown = "".join(invoke(*words).output for words in (("show", out), ("store", "show", out), ("store", "show", url)))
    files = "".join(path.read_text() for path in (out / POINTER, out / LOCK))
    assert "secret" not in str(dumped) + shown + files
    assert "--store" in str(dumped), "the command is recorded"


def test_a_second_folder_measures_nothing_again_and_shows_its_own_run(tiny, tmp_path, url):
    folder_a, folder_b = tmp_path / "one", tmp_path / "two"
    first = invoke_json(*tune(tiny, folder_a, "--store", url))
    second = invoke_json(*tune(tiny, folder_b, "--store", url))
    assert (first["reused"], second["measured"]) == (0, 0)
    assert results(folder_a) == results(folder_b)
    assert [invoke_json("show", folder)["runs"] for folder in (folder_a, folder_b)] == [1, 1]
    spent = [sum(invoke_json("show", folder)["cost_seconds"].values()) for folder in (folder_a, folder_b)]
    assert spent[0] > 0 == spent[1]
    again = invoke_json(*tune(tiny, folder_b, "--remeasure"))
    assert again["measured"] == first["measured"], "the other folder's measurements do not count"


def test_a_failure_that_another_folder_saw_is_shown_where_it_was_used(tmp_path, url):
    file = fake_file(tmp_path, TINY.replace("FAULT", "none, wrong value"))
    for folder in ("one", "two"):
        assert invoke_json(*tune(file, tmp_path / folder, "--store", url), code=1)["look_at"]
        failures = invoke_json("show", tmp_path / folder, code=1)["failures"]
        assert [failure["outcome"] for failure in failures] == ["wrong result"]
    other = fake_file(tmp_path, TINY.replace("FAULT", "none"), "other.yaml")
    invoke_json(*tune(other, tmp_path / "three", "--store", url))
    assert invoke_json("show", tmp_path / "three")["failures"] == []


def test_the_environment_names_the_store_of_new_folders_only(tiny, tmp_path, url, monkeypatch):
    old = tmp_path / "old"
    invoke_json(*tune(tiny, old))
    monkeypatch.setenv("TUNESMITH_STORE", url)
    invoke_json(*tune(tiny, old))
    assert not (old / POINTER).exists()
    invoke_json(*tune(tiny, tmp_path / "new"))
    assert json.loads((tmp_path / "new" / POINTER).read_text())["store"] == url.replace(":secret", "")
    with pytest.raises(UserError, match="keeps its measurements in"):
        invoke(*tune(tiny, old, "--store", url))


def test_a_store_that_cannot_be_reached_is_told_before_anything_is_measured_and_leaves_no_pointer(tiny, tmp_path):
    with pytest.raises(UserError, match="see that the server runs"):
        invoke(*tune(tiny, tmp_path / "out", "--store", f"postgresql://me@/db?host={tmp_path}"))
    assert not (tmp_path / "out" / POINTER).exists()


def test_a_run_whose_server_is_killed_ends_with_what_to_do_and_the_same_command_goes_on(tmp_path):
    file, out = fake_file(tmp_path), tmp_path / "out"
    with postgresql_server() as server:
        words = tune(file, out, "--store", server.fresh(), "--json")
        with started(execute, *map(str, words), env=environment()) as (run, call):
            while not run.has_message and not _has_rows(out, 5):
                time.sleep(0.02)
            server.stop(signal.SIGQUIT)
            code, err = code_of(run), call.err.read_text()
        assert code == 2, err
        assert "run the same command again" in err or "see that the server runs" in err
        assert "Traceback" not in err
        server.start()
        before = rows(out)
        assert len(before) >= 5
        last = invoke_json(*words[:-1])
        after = rows(out)
    assert {key: after.get(key) for key in before} == before
    assert last["measured"] == len(after) - len(before)
    assert last["state"] == "finished"


def _has_rows(folder, count):
    try:
        return len(rows(folder)) >= count
    except Exception as error:  # a driver's own error for a table that is not there yet
        if "measurements" in str(error):
            return False
        raise


def test_a_folder_moves_into_a_database_and_measures_nothing_again(tiny, tmp_path, url):
    out = tmp_path / "out"
    invoke_json(*tune(tiny, out))
    copied = invoke_json("store", "copy", out, url)
    assert (copied["measurements"], copied["present"], copied["runs"]) == (len(rows(out)), 0, 1)
    assert invoke_json("store", "copy", out, url)["measurements"] == 0
    assert "secret" not in json.dumps(copied) + invoke("store", "copy", out, url).output
    (out / FILE_NAME).rename(tmp_path / "old.sqlite")
    assert invoke_json(*tune(tiny, out, "--store", url))["measured"] == 0
    assert invoke_json("store", "copy", url, tmp_path / "all.sqlite")["runs"] == 2
    assert invoke_json("store", "show", tmp_path / "all.sqlite")["runs"] == {"finished": 2}


def test_a_store_is_not_copied_to_itself_and_not_from_nowhere(tmp_path):
    with Store.open(tmp_path / FILE_NAME):
        pass
    with pytest.raises(UserError, match="is the same store"):
        invoke("store", "copy", tmp_path, tmp_path / FILE_NAME)
    with pytest.raises(UserError, match="no such file"):
        invoke("store", "copy", tmp_path / "missing", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_copy_that_is_interrupted_says_how_to_go_on(tmp_path, monkeypatch):
    Store.open(tmp_path / "a").close()

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("tunesmith.cli.store.copy.copy_store", interrupted)
    done = invoke("store", "copy", tmp_path / "a", tmp_path / "b")
    assert done.exit_code == 130
    assert "the same command goes on" in done.output
