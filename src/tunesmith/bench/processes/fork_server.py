"""The process that forks the bench's children, so that the modules of all of them are imported once.

Importing takes a third of a second of processor time and a fork a few milliseconds. A run starts many children: every
compile process, the worker, and a new one after every crash. Nothing that is imported here opens a device, since most
drivers do not survive a fork.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import sys
import warnings
from contextlib import suppress
from importlib import import_module

from .process import NUMBER, connect_to_parent, die_with_parent

PRELOADED = ("tunesmith.bench.processes.compiler", "tunesmith.bench.processes.worker", "numpy.random")
MOST_REQUEST_BYTES = 1 << 16


def main(arguments: list[str]) -> None:
    requests, parent = map(int, arguments[:2])
    die_with_parent(parent)
    for module in (*PRELOADED, *arguments[2:]):
        import_module(module)
    gc.collect()
    gc.freeze()
    # Only threads of numerical libraries run here. They end before a fork and begin anew at the next use.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    if (child := _serve(socket.socket(fileno=requests))) is not None:
        module, connection, lifeline = child
        import_module(module).main(connect_to_parent(connection, lifeline))


def _serve(requests: socket.socket) -> tuple[str, int, int] | None:
    """Fork a child for each request, and tell how each one ended, until the parent is gone.

    A request is a module's name and the child's own variables in JSON (null for none), with four descriptors: the
    child's connection, its lifeline, the file for its output and the pipe for its status. Returns None in the server;
    in a child the module's name, its connection and lifeline.
    """
    statuses: dict[int, int] = {}
    ended, ended_end = socket.socketpair()
    ended.setblocking(False)
    ended_end.setblocking(False)
    signal.set_wakeup_fd(ended_end.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    for source in (requests, ended):
        selector.register(source, selectors.EVENT_READ)
    while True:
        sources = [key.fileobj for key, _ in selector.select()]
        if ended in sources:
            ended.recv(MOST_REQUEST_BYTES)
            _tell_ends(statuses)
        if requests not in sources:
            continue
        request, descriptors, _, _ = socket.recv_fds(requests, MOST_REQUEST_BYTES, 4)
        if not request:
            return None
        name, variables = json.loads(request)
        connection, lifeline, output, status = descriptors
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            selector.close()
            _become_child(
                server, output, (status, *statuses.values(), *(s.detach() for s in (requests, ended, ended_end)))
            )
            for variable, value in variables.items():
                if value is None:
                    os.environ.pop(variable, None)
                else:
                    os.environ[variable] = value
            return name, connection, lifeline
        for descriptor in (connection, lifeline, output):
            os.close(descriptor)
        if pid > 0:
            statuses[pid] = status
            # The child does the same. Whichever comes first, the group is there once the parent knows the child.
            _lead_group(pid)
        else:
            os.close(status)
        requests.send(NUMBER.pack(pid))


def _become_child(server: int, output: int, others: tuple[int, ...]) -> None:
    _lead_group(0)
    die_with_parent(server)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    for descriptor in (output, *others):
        os.close(descriptor)


def _lead_group(pid: int) -> None:
    """Make a process the leader of a group of its own, in which whatever it starts is killed with it."""
    try:
        os.setpgid(pid, pid)
    except OSError:
        return  # it has ended


def _tell_ends(statuses: dict[int, int]) -> None:
    """Write the status of every child that has ended to its pipe."""
    for pid in list(statuses):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            pipe = statuses.pop(pid)
            with suppress(BrokenPipeError):  # nobody asks any more
                os.write(pipe, NUMBER.pack(os.waitstatus_to_exitcode(status)))
            os.close(pipe)


if __name__ == "__main__":
    main(sys.argv[1:])
