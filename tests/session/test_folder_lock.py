"""One run at a time works in a folder; a second one is told who does, or waits."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from forked import code_of, started
from tunesmith.bench import Spawner
from tunesmith.bench.injected_faults import VARIABLE
from tunesmith.records import UserError
from tunesmith.session.frame.lock import LOCK, held_folder
from tuning_runs import environment, execute, fake_file, orphans, tune_json, tunesmith


@pytest.fixture
def holder(tmp_path):
    """A process that holds a folder until it gets a message."""
    with Spawner({}) as spawner:
        child = spawner.start("folder_holder")
        child.send(tmp_path)
        assert child.receive() == "holding"
        yield child
        child.end()


def refused(folder):
    with pytest.raises(UserError) as caught, held_folder(folder):
        pass
    return caught.value


def test_the_second_is_told_who_holds_the_folder_and_since_when(holder, tmp_path):
    error = refused(tmp_path)
    assert error.location == str(tmp_path)
    assert f"process {holder.pid} on " in error.what
    assert "(tunesmith tune --store=postgresql://me@host/db)" in error.what
    since = json.loads((tmp_path / LOCK).read_text())["since"]
    assert abs(since - time.time()) < 60
    assert time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since)) in error.what
    assert "--wait" in error.remedy
    assert "secret" not in str(error) + (tmp_path / LOCK).read_text()


def test_a_lock_ends_with_its_process_however_that_ends(holder, tmp_path):
    holder.kill()  # before `end` closes the connection, which the process would notice
    holder.end()
    assert (tmp_path / LOCK).read_text(), "the file of the killed process is left"
    with held_folder(tmp_path):
        pass


def test_who_waits_says_so_once_and_goes_on_when_the_folder_is_free(holder, tmp_path):
    sentences, entered = [], threading.Event()

    def wait():
        with held_folder(tmp_path, wait=True, say=sentences.append):
            entered.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not entered.wait(1.0), "it waits as long as the folder is held"
    assert len(sentences) == 1
    assert f"process {holder.pid}" in sentences[0]
    holder.send("let go")
    waiting.join(30)
    assert entered.is_set()


def test_ctrl_c_ends_the_waiting(holder, tmp_path):
    def interrupt(sentence):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), held_folder(tmp_path, wait=True, say=interrupt):
        pass
    assert "tuned in it" in refused(tmp_path).what, "the folder is still the other's"


def test_a_thread_may_enter_again_and_another_thread_may_not(tmp_path):
    """An autotuned call holds the folder in which its run is carried out."""
    refusals = []
    with held_folder(tmp_path):
        with held_folder(tmp_path / "." / ".." / tmp_path.name):
            pass
        thread = threading.Thread(target=lambda: refusals.append(refused(tmp_path)))
        thread.start()
        thread.join()
    assert [f"process {os.getpid()}" in error.what for error in refusals] == [True]
    with held_folder(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert (tmp_path / LOCK).read_text() == "", "nobody is named when nobody holds it"


def test_folders_are_apart(tmp_path):
    with held_folder(tmp_path / "a"), held_folder(tmp_path / "b"):
        pass


@pytest.mark.parametrize("left", ["", "{", "[]", '{"host": 1}', '{"host": "a", "pid": "x"}'])
def test_a_held_folder_is_refused_whatever_its_file_says(holder, tmp_path, left):
    (tmp_path / LOCK).write_text(left)
    assert refused(tmp_path).what == "another process tunes in it"


def test_no_child_of_a_killed_run_keeps_the_folder(tmp_path):
    """The run is killed while its worker hangs; until the worker notices, it must not hold the lock."""
    token = tmp_path / "token"
    token.touch()
    env = environment(**{VARIABLE: f"verifying:worker:3:hang:{token}"})
    folder = tmp_path / "run"
    words = map(str, ("tune", fake_file(tmp_path), "-o", folder, "--device", "fake:GPU:8"))
    with started(execute, *words, env=env) as (run, _):
        while token.exists() and not run.has_message:
            time.sleep(0.005)
        assert "has tuned in it since" in refused(folder).what
        os.kill(run.pid, signal.SIGKILL)
        assert code_of(run) == -signal.SIGKILL
        with held_folder(folder):
            pass
    assert not orphans(env["TUNESMITH_TEST_MARK"])


@pytest.fixture
def finished(tmp_path):
    file = fake_file(tmp_path)
    tune_json(file, tmp_path / "run")
    return file, tmp_path / "run"


def test_what_is_there_can_be_read_while_another_tunes(finished):
    file, folder = finished
    with held_folder(folder):
        for words in (("show", folder), ("plan", file, "--device", "fake:GPU:8")):
            done = tunesmith(*words)
            assert done.returncode == 0, done.stderr
        done = tunesmith("tune", file, "-o", folder, "--device", "fake:GPU:8")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert f"process {os.getpid()} on" in done.stderr
        assert "--wait" in done.stderr


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be made"), held_folder(Path(tmp_path / "file" / "run")):
        pass
