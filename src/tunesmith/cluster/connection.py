"""The command's connection to a cluster: what joins and leaves, what devices send, and whether the scheduler lives."""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from distributed import Client, Future
from distributed.comm.core import CommClosedError

from tunesmith.records import UserError

from .messages import STARTUP, Role, WorkerIdentity

CONNECT_SECONDS = 10.0
PING_SECONDS, SILENCE_SECONDS = 2.0, 20.0
"""How often the scheduler is asked whether it lives, and how long it may take to answer."""

ALL_TOPIC = "all"
"""Dask's own topic for workers that join and leave."""


@dataclass(frozen=True, slots=True)
class Received:
    """What a device sent: the message, by its portion."""

    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Joined:
    """Workers joined the cluster; `Connection.members` has them."""


@dataclass(frozen=True, slots=True)
class Left:
    """The worker at an address is gone."""

    address: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Dask could not carry out a portion: its function raised, or what it depends on is lost."""

    portion: int
    why: str


News = Received | Joined | Left | Failed


class ClusterConnection:
    """A client of a Dask scheduler. `next_news` waits for news; every other method may be called at any time.

    `numbers` gives each portion a number of its own, whoever sends it: Dask does not carry out a call whose key an
    earlier call had.

    TLS comes from Dask's configuration. Raises UserError if the scheduler cannot be reached, and from every method once
    the scheduler is lost.
    """

    def __init__(self, address: str = "", scheduler_file: str = "") -> None:
        self.topic = f"tunesmith-{uuid.uuid4().hex}"
        self._location = address or scheduler_file
        self.numbers = itertools.count()
        self._news: queue.SimpleQueue[News | None] = queue.SimpleQueue()
        self._lost = ""
        for name in ("distributed", "distributed.client", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        endpoint: dict[str, Any] = {"scheduler_file": scheduler_file} if scheduler_file else {"address": address}
        try:
            self.client = Client(**endpoint, timeout=CONNECT_SECONDS, set_as_default=False, name="tunesmith")
        except (TimeoutError, OSError, ValueError, TypeError) as error:
            what = f"no scheduler can be reached there ({error or type(error).__name__})"
            remedy = "start `dask scheduler` there, and set Dask's TLS configuration if it uses tls://"
            raise UserError(self._location, what, remedy) from error
        self.client.subscribe_topic(self.topic, self._on_received)
        self.client.subscribe_topic(ALL_TOPIC, self._on_members)
        self._watch = asyncio.run_coroutine_threadsafe(self._watch_scheduler(), self.client.loop.asyncio_loop)

    @property
    def address(self) -> str:
        return str(self.client.scheduler.address) if self.client.scheduler else self._location

    @property
    def dashboard(self) -> str:
        """The address of Dask's dashboard."""
        with suppress(Exception):
            return str(self.client.dashboard_link)
        return ""

    def members(self) -> dict[str, WorkerIdentity]:
        """The workers of the cluster that are tunesmith's, by address, in the order in which they joined."""
        self._check()
        try:
            workers = self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"]
        except (OSError, AttributeError, CommClosedError):
            self._lose("does not answer")
            self._check()
            raise
        identities = {address: WorkerIdentity.of(facts.get(STARTUP)) for address, facts in workers.items()}
        return {address: identity for address, identity in identities.items() if identity}

    def devices(self) -> dict[str, WorkerIdentity]:
        return {address: member for address, member in self.members().items() if member.role is Role.DEVICE}

    def next_news(self, seconds: float) -> News | None:
        """The next news; None if there is none for so many seconds. Raises UserError if the scheduler is lost."""
        with suppress(queue.Empty):
            news = self._news.get(timeout=seconds)
            if news is not None:
                return news
        self._check()
        return None

    def arrived_news(self) -> Iterator[News]:
        """The news that are here already, in their order. Never waits."""
        with suppress(queue.Empty):
            while news := self._news.get_nowait():
                yield news

    def submit(self, portion: int, function: Any, *arguments: Any, **options: Any) -> Future:
        """Let the cluster call a function; if Dask fails, `Failed` news say so."""
        self._check()
        future = self.client.submit(function, *arguments, pure=False, retries=0, **options)
        future.add_done_callback(lambda done: self._on_done(portion, done))
        return future

    def cancel(self, future: Future) -> None:
        """Let the cluster forget a call. A lost scheduler has forgotten it already."""
        if not self._lost and self.client.status == "running":
            with suppress(OSError, RuntimeError, CommClosedError, asyncio.CancelledError):
                future.cancel()

    def close(self) -> None:
        self._watch.cancel()
        with suppress(Exception):
            self.client.close(timeout=2 if not self._lost else 0)

    def _check(self) -> None:
        if self._lost:
            what = f"the scheduler {self._lost}; everything measured until then is kept"
            raise UserError(self._location or "cluster", what, "the same command goes on from there")

    def _lose(self, how: str) -> None:
        self._lost = self._lost or how
        self._news.put(None)

    def _on_received(self, event: tuple[float, Any]) -> None:
        self._news.put(Received(event[1]))

    def _on_members(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"action": "add-worker"}:
                self._news.put(Joined())
            case {"action": "remove-worker", "worker": address}:
                self._news.put(Left(address))

    def _on_done(self, portion: int, future: Future) -> None:
        if future.status == "error":
            with suppress(Exception):
                self._news.put(Failed(portion, f"{type(future.exception()).__name__}: {future.exception()}"))

    async def _watch_scheduler(self) -> None:
        """Ask the scheduler now and then whether it lives; a connection that breaks is noticed at once."""
        client, asked = self.client, time.monotonic()
        while not self._lost:
            await asyncio.sleep(0.2)
            comm = client.scheduler_comm
            if client.status != "running" or comm is None or comm.closed():
                self._lose("was lost")
            elif time.monotonic() - asked > PING_SECONDS:
                try:
                    await asyncio.wait_for(client.scheduler.identity(n_workers=0), SILENCE_SECONDS)
                except (TimeoutError, OSError, CommClosedError):
                    self._lose(f"gave no answer for {SILENCE_SECONDS:g} s")
                asked = time.monotonic()
