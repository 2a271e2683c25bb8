"""The worker processes of one host: started together, replaced when they die or hang, ended together.

It does for its workers what Dask's nanny does, but its processes end with it at once, even if it is killed, and a
worker that hangs is noticed by its missing beats.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from tunesmith.bench import Spawner
from tunesmith.bench.processes.process import Child
from tunesmith.records import UserError

from .process import Beat, SchedulerLost, SchedulerStart, WorkerStart

MODULE = "tunesmith.cluster.process"

START_SECONDS = 180.0
"""How long a process may take to start. A device is tried out, which may compile."""

HUNG_SECONDS = 20.0
"""A process that gives no beat for so long hangs, and is killed and replaced."""

QUICK_DEATHS, QUICK_SECONDS = 3, 20.0
"""A worker that ends so many times in a row within so many seconds of its start is given up."""

LOOK_SECONDS = 0.5


def spawner() -> Spawner:
    """Starts processes of a cluster."""
    return Spawner({}, (MODULE,))


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """A scheduler in a process of its own. `dashboard` is the address of Dask's dashboard; empty without one."""

    child: Child
    address: str
    dashboard: str

    @staticmethod
    def start(spawner: Spawner, start: SchedulerStart) -> RunningScheduler:
        child = spawner.start(MODULE)
        child.send(start)
        answer = child.receive() if child.connection.poll(START_SECONDS) else None
        if isinstance(answer, UserError):
            raise answer
        if not isinstance(answer, Beat):
            raise UserError("scheduler", f"did not start: {child.end()} {child.last_words()}", "free memory, try again")
        host = answer.address.partition("://")[2].rpartition(":")[0]
        link = f"http://{host}:{answer.dashboard}/status" if answer.dashboard else ""
        # Its beats are not needed: the client asks the scheduler itself whether it lives.
        threading.Thread(target=_drain, args=(child.connection,), daemon=True).start()
        return RunningScheduler(child, answer.address, link)


@dataclass
class _Member:
    start: WorkerStart
    child: Child | None = None
    began: float = 0.0
    last_beat: float = 0.0
    joined: bool = False
    quick_deaths: int = 0
    given_up: str = ""


class LocalHost:
    """The workers of this host. `say` is told, in sentences, what happens to them.

    `failures` holds a UserError for each worker that was given up, by its device (empty for the compiler).
    `scheduler_lost` is set when a worker found its scheduler gone; then no worker is started any more.
    """

    def __init__(
        self,
        spawner: Spawner,
        starts: Sequence[WorkerStart],
        say: Callable[[str], None],
        hung_seconds: float = HUNG_SECONDS,
    ) -> None:
        self._spawner, self._say, self._hung_seconds = spawner, say, hung_seconds
        self._members = [_Member(start) for start in starts]
        self.failures: dict[str, UserError] = {}
        self.scheduler_lost = threading.Event()
        self._closing = threading.Event()
        for member in self._members:
            self._start(member)
        self._watcher = threading.Thread(target=self._watch, name="tunesmith-local-host", daemon=True)
        self._watcher.start()

    @property
    def settled(self) -> bool:
        """Whether every worker has joined or was given up."""
        return all(member.joined or member.given_up for member in self._members)

    @property
    def pids(self) -> dict[str, int]:
        """The process of each device; the compiler's name is empty."""
        return {member.start.device: member.child.pid for member in self._members if member.child}

    def close(self) -> None:
        """End every worker at once."""
        self._closing.set()
        self._watcher.join()
        for member in self._members:
            if member.child:
                member.child.end()

    def _start(self, member: _Member) -> None:
        member.child = self._spawner.start(MODULE)
        member.began = member.last_beat = time.monotonic()
        member.joined = False
        member.child.send(member.start)

    def _watch(self) -> None:
        while not self._closing.is_set():
            living = {member.child.connection: member for member in self._members if member.child}
            if not living:
                self._closing.wait(LOOK_SECONDS)
                continue
            for ready in wait(list(living), LOOK_SECONDS):
                assert isinstance(ready, Connection)
                self._hear(living[ready], _received(ready))
            for member in self._members:
                patience = self._hung_seconds if member.joined else START_SECONDS
                if member.child and time.monotonic() - member.last_beat > patience:
                    self._replace(member, f"gave no sign for {patience:g} s")

    def _hear(self, member: _Member, message: Any) -> None:
        match message:
            case Beat():
                member.last_beat = time.monotonic()
                member.joined = True
            case SchedulerLost():
                self.scheduler_lost.set()
            case UserError():
                self._give_up(member, message)
            case _:
                self._replace(member, "ended")

    def _replace(self, member: _Member, why: str) -> None:
        assert member.child is not None
        ended, words = member.child.end(patience=1.0), member.child.last_words()
        member.child, member.joined = None, False
        if self._closing.is_set() or self.scheduler_lost.is_set():
            return
        is_quick = time.monotonic() - member.began < QUICK_SECONDS
        member.quick_deaths = member.quick_deaths + 1 if is_quick else 0
        name = member.start.device or "the compiling process"
        if member.quick_deaths >= QUICK_DEATHS:
            what = f"its process {why} ({ended}) {QUICK_DEATHS} times in a row: {words.splitlines()[-1:] or ''}"
            self._give_up(member, UserError(name, what, "see what ends it, or leave the device out"))
            return
        self._say(f"the process of {name} {why} ({ended}); a new one takes its place")
        try:
            self._start(member)
        except UserError as error:
            self._give_up(member, error)

    def _give_up(self, member: _Member, error: UserError) -> None:
        if member.child:
            member.child.end(patience=1.0)
            member.child = None
        member.given_up = str(error)
        self.failures[member.start.device] = error
        self._say(f"{member.start.device or 'the compiling process'} is left out: {error}")


def _received(connection: Connection) -> Any:
    try:
        return connection.recv()
    except (EOFError, OSError):
        return None


def _drain(connection: Connection) -> None:
    while _received(connection) is not None:
        pass
