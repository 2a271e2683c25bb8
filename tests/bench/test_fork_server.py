"""The process that forks the bench's children: what becomes of a child, of its server, and of requests that fail."""

from __future__ import annotations

import errno
import gc
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from processes import processes
from tunesmith.bench import Spawner
from tunesmith.bench.processes import process
from tunesmith.bench.processes.process import NUMBER
from tunesmith.records import UserError

CHILD = """
import os, sys, time

def main(connection):
    what = connection.recv()
    if what == "state":
        connection.send((os.getpid(), os.getppid(), os.getpgrp(), sorted(map(int, os.listdir("/proc/self/fd")))))
    elif what == "variable":
        connection.send(os.environ.get("TUNESMITH_TEST_VALUE"))
    elif what == "leave":
        print("leaving", flush=True)
        sys.exit(3)
    elif what == "raise":
        raise ValueError("not this")
    elif what == "sleep":
        connection.send("asleep")
        time.sleep(60)
"""


@pytest.fixture
def spawner(tmp_path, monkeypatch, own_servers):
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.syspath_prepend(tmp_path)
    with Spawner({}) as spawner:
        yield spawner


def asked(spawner, what):
    child = spawner.start("child")
    child.send(what)
    return child


def test_children_have_a_group_of_their_own_and_no_descriptor_of_another_child(spawner):
    children = [asked(spawner, "state") for _ in range(3)]
    states = [child.receive() for child in children]
    servers = {server for _, server, _, _ in states}
    assert len(servers) == 1
    assert servers.isdisjoint({os.getpid()})
    for child, (pid, _, group, descriptors) in zip(children, states, strict=True):
        assert pid == group == child.pid
        # Standard input, output and error, the connection, the lifeline, and the folder that is listed.
        assert len(descriptors) == 6


@pytest.mark.parametrize(
    ("what", "status", "words"),
    [("leave", "exit 3", "leaving"), ("raise", "exit 1", "ValueError: not this"), ("", "exit 0", "")],
)
def test_a_child_that_ends_by_itself_leaves_its_status_and_last_words(spawner, what, status, words):
    child = asked(spawner, what)
    assert child.receive() is None
    assert child.end(patience=10.0) == status
    assert child.last_words().endswith(words)
    assert child.end() == status, "once more"


def test_a_child_that_is_ended_was_killed_and_is_gone(spawner):
    child = asked(spawner, "sleep")
    assert child.receive() == "asleep"
    assert child.end() == "SIGKILL"
    assert child.pid not in {process.pid for process in processes()}


def test_a_server_that_was_killed_takes_its_children_along_and_another_takes_its_place(spawner):
    child, waiting = asked(spawner, "state"), asked(spawner, "sleep")
    _, server, _, _ = child.receive()
    assert waiting.receive() == "asleep"
    os.kill(server, signal.SIGKILL)
    assert waiting.receive() is None
    assert waiting.end() == "SIGKILL"
    deadline = time.monotonic() + 10
    while server in {process.pid for process in processes()} and time.monotonic() < deadline:
        time.sleep(0.01)
    _, another, _, _ = asked(spawner, "state").receive()
    assert another != server


def test_nothing_is_left_once_the_spawner_is_closed(tmp_path, monkeypatch, own_servers):
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.syspath_prepend(tmp_path)
    with Spawner({}) as spawner:
        child = asked(spawner, "state")
        pid, server, _, _ = child.receive()
        sleeping = asked(spawner, "sleep")
        assert sleeping.receive() == "asleep"
    deadline = time.monotonic() + 10
    while left := {pid, server, sleeping.pid} & {process.pid for process in processes()}:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


def test_a_server_that_cannot_start_is_told_with_what_it_printed(own_servers):
    with Spawner({"PYTHONIOENCODING": "no-such-encoding"}) as spawner, pytest.raises(UserError) as found:
        spawner.start("child")
    assert "the system starts no process" in found.value.what
    assert "no-such-encoding" in found.value.what


REFUSING = """
import errno, os, sys
from tunesmith.bench.processes import fork_server
def fork():
    raise OSError(errno.EAGAIN, "no more processes")
os.fork = fork
fork_server.main(sys.argv[1:])
"""


def test_a_refused_fork_is_answered_with_the_systems_reason_and_the_server_goes_on():
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", REFUSING, str(theirs.fileno()), str(os.getpid())]
    with ours, subprocess.Popen(command, pass_fds=(theirs.fileno(),)) as server:
        theirs.close()
        for _ in range(2):
            socket.send_fds(ours, [b'["child", {}]'], [0, 0, 0, 0])
            assert NUMBER.unpack(ours.recv(NUMBER.size)) == (-errno.EAGAIN,)
        ours.close()
        assert server.wait(10) == 0


@pytest.fixture
def kept(spawner):
    """A kept server, which ends with the test."""
    process.keep_server(("colorsys",))
    server = process._kept_server()
    yield server
    server.close()


def test_a_kept_server_forks_the_children_of_all_spawners_and_outlives_them(kept, spawner):
    with Spawner({}) as other:
        parents = {asked(each, "state").receive()[1] for each in (spawner, other)}
    assert parents == {kept.pid}
    assert not kept.ended
    process.keep_server(("colorsys",))
    assert process._kept_server() is kept, "a second call starts no second server"


def test_a_later_call_may_ask_for_more(kept):
    process.keep_server((), keeps_workers=True)
    assert process._kept_server() is kept
    assert Spawner({}).keeps_workers
    process.keep_server(("wave",))
    more = process._kept_server()
    assert more is not kept
    assert process._KEPT.preloaded == {"colorsys", "wave"}
    assert process._KEPT.keeps_workers
    process.keep_server(("colorsys",))
    assert process._kept_server() is more
    more.close()


@pytest.mark.parametrize("change", ["more to import", "a variable that acts at a start"])
def test_children_of_a_server_that_was_replaced_live_on(spawner, monkeypatch, change):
    """Only the module knows the server then: a server that nobody holds ends, and its children with it."""
    process.keep_server(("colorsys",))
    child = asked(spawner, "sleep")
    assert child.receive() == "asleep"
    if change == "a variable that acts at a start":
        monkeypatch.setenv("LD_LIBRARY_PATH", "/no/such/folder")
    process.keep_server(("wave",))
    second = asked(spawner, "sleep")
    assert second.receive() == "asleep"
    gc.collect()
    time.sleep(0.5)
    living = {living.pid for living in processes()}
    assert {child.pid, second.pid} <= living
    for server in (process._KEPT, *process._KEPT.former):
        server.server.result().close()
    assert child.end() == second.end() == "SIGKILL"


def test_children_of_one_server_have_variables_of_their_own(kept, tmp_path):
    for value in ("one", "two"):
        with Spawner({"TUNESMITH_TEST_VALUE": value}) as spawner:
            assert asked(spawner, "variable").receive() == value


def test_variables_reach_the_children_and_those_that_act_at_a_start_need_another_server(kept, spawner, monkeypatch):
    with monkeypatch.context() as changed:
        changed.setenv("TUNESMITH_TEST_VALUE", "changed")
        assert asked(spawner, "variable").receive() == "changed"
        changed.setenv("LD_LIBRARY_PATH", "/no/such/folder")
        assert asked(spawner, "state").receive()[1] != kept.pid
    assert asked(spawner, "variable").receive() is None
    os.kill(kept.pid, signal.SIGKILL)
    kept._process.wait()
    assert asked(spawner, "state").receive()[1] != kept.pid


def test_a_fork_of_this_process_does_not_use_its_server(kept):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if process._kept_server() is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
