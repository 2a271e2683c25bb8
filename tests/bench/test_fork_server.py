"""The process that forks the bench's children: what becomes of a child, of its server, and of requests that fail."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from processes import processes
from tunesmith.bench import Spawner
from tunesmith.bench.processes.process import NUMBER
from tunesmith.records import UserError

CHILD = """
import os, sys, time

def main(connection):
    what = connection.recv()
    if what == "state":
        connection.send((os.getpid(), os.getppid(), os.getpgrp(), sorted(map(int, os.listdir("/proc/self/fd")))))
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
def spawner(tmp_path, monkeypatch):
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


def test_nothing_is_left_once_the_spawner_is_closed(tmp_path, monkeypatch):
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


def test_a_server_that_cannot_start_is_told_with_what_it_printed():
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
            socket.send_fds(ours, [b"child"], [0, 0, 0, 0])
            assert NUMBER.unpack(ours.recv(NUMBER.size)) == (-errno.EAGAIN,)
        ours.close()
        assert server.wait(10) == 0
