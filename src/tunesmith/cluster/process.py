"""The processes of a cluster on one host: Dask's scheduler, a worker for each device, and one that compiles.

A `LocalHost` forks them from a server that has imported Dask once. Each ends with the process that started it. It tells
that process that it lives (`Beat`), so that a hanging process is noticed and replaced.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import dask
from distributed import Scheduler, Worker

from tunesmith.devices import choose, environment
from tunesmith.records import Target, UserError

from . import worker as tasks
from .compiling import CompileService
from .messages import COMPILES, STARTUP, Role, WorkerIdentity, compiler_versions

BEAT_SECONDS = 1.0

JOIN_SECONDS = 60.0
"""How long a worker tries to reach the scheduler."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The process lives. `joined`: a worker has joined its cluster, or the scheduler runs at `address`, with Dask's
    dashboard at the port `dashboard` (0 if it has none)."""

    joined: bool = True
    address: str = ""
    dashboard: int = 0


@dataclass(frozen=True, slots=True)
class SchedulerLost:
    """The worker has ended since its scheduler is gone."""


@dataclass(frozen=True)
class SchedulerStart:
    """Start a scheduler that listens on an address of this host. A worker that gives no sign for `worker_seconds` is
    taken for dead."""

    listen: str = "tcp://127.0.0.1:0"
    worker_seconds: float = 60.0


@dataclass(frozen=True)
class WorkerStart:
    """Start a worker that joins the scheduler at `address`.

    A device is given by its `target`, or, for a part of a CPU, by `selector` and `cores`. The process keeps to its
    cores, if it has any. For a part of a CPU it finds out what the device is like there. `part` is then added to the
    device's name, so that its times are not taken for those of the whole CPU. `toolchains` are then the versions of the
    whole host's compilers, as the command knows them: a BLAS that keeps to fewer cores calls itself another version. A
    compiler has so many `processes`.
    """

    address: str
    role: Role
    host: str
    cache: Path
    device: str = ""
    target: Target | None = None
    selector: str = ""
    cores: tuple[int, ...] = ()
    part: str = ""
    toolchains: Mapping[str, str] | None = None
    processes: int = 0


def main(connection: Connection) -> None:
    """Run what the first message says, until it ends."""
    start = connection.recv()
    name_process(start.role.value if isinstance(start, WorkerStart) else "scheduler")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    work = _scheduler(start, connection) if isinstance(start, SchedulerStart) else _worker(start, connection)
    try:
        asyncio.run(work)
    except UserError as error:
        connection.send(error)
    except OSError as error:
        connection.send(UserError("cluster", str(error), "see that the scheduler runs and can be reached"))


def name_process(role: str) -> None:
    """Let `ps` and `top` show what this process is; all are forked from one program."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(f"ts-{role}")


async def _scheduler(start: SchedulerStart, connection: Connection) -> None:
    dask.config.set({"distributed.scheduler.worker-ttl": f"{start.worker_seconds:g}s"})
    protocol, _, rest = start.listen.partition("://")
    interface, _, port = rest.rpartition(":")
    async with Scheduler(
        protocol=f"{protocol}://", host=interface, port=int(port), dashboard_address=f"{interface}:0", dashboard=True
    ) as scheduler:
        ports = scheduler.services.get("dashboard")
        connection.send(Beat(address=scheduler.address, dashboard=ports.port if ports and _has_dashboard() else 0))
        await _beat_until(scheduler.finished(), connection)


async def _worker(start: WorkerStart, connection: Connection) -> None:
    variables = {**environment(start.cache), **_kept_to_cores(start)}
    if start.role is Role.COMPILER:
        identity = WorkerIdentity(start.role, start.host, processes=start.processes)
        tasks.compilers = CompileService(start.cache, start.processes)
    else:
        target = start.target or choose(start.selector)
        tasks.host = tasks.DeviceHost(target, start.cache, variables)
        shown = target.part(start.part) if start.part else target
        versions = start.toolchains or compiler_versions(target)
        identity = WorkerIdentity(start.role, start.host, start.device, shown, toolchains=versions)
    # A compiler's callers only wait: each has a program that one of its processes compiles.
    callers = start.processes if start.role is Role.COMPILER else 1
    worker = Worker(
        start.address,
        nthreads=callers,
        resources={COMPILES: callers} if start.role is Role.COMPILER else {},
        startup_information={STARTUP: lambda _: identity.to_plain()},
        death_timeout=JOIN_SECONDS,
        memory_limit=0,
        dashboard=False,
        # Dask has a folder there for all workers, and a worker that begins removes those of workers that were killed.
        local_directory=tempfile.gettempdir(),
    )
    try:
        async with worker:
            connection.send(Beat())
            await _beat_until(worker.finished(), connection)
    finally:
        for held in (tasks.host, tasks.compilers):
            if held is not None:
                held.close()
    if not await _is_there(worker):
        connection.send(SchedulerLost())


def _kept_to_cores(start: WorkerStart) -> dict[str, str]:
    """Keep this process to its cores, if it has any of its own; the variables by which drivers do the same."""
    if not start.cores:
        return {}
    os.sched_setaffinity(0, start.cores)
    if not start.part:
        return {}
    # By itself, PoCL would pin its threads to the host's first cores, whatever the process may use.
    own = {"POCL_AFFINITY": "0", "POCL_CPU_MAX_CU_COUNT": str(len(start.cores))}
    os.environ.update(own)
    return own


async def _beat_until(finished: Any, connection: Connection) -> None:
    """Tell the parent now and then that this process's event loop runs, until `finished`."""
    ended = asyncio.ensure_future(finished)
    while not ended.done():
        await asyncio.wait([ended], timeout=BEAT_SECONDS)
        connection.send(Beat())
    await ended


async def _is_there(worker: Worker) -> bool:
    """Whether the worker's scheduler still answers."""
    from distributed.core import rpc

    try:
        async with rpc(worker.scheduler.address, connection_args=worker.connection_args) as scheduler:
            await asyncio.wait_for(scheduler.identity(n_workers=0), timeout=5)
    except (TimeoutError, OSError):
        return False
    return True


def _has_dashboard() -> bool:
    """Whether Dask can show its dashboard here: it needs bokeh."""
    from importlib.util import find_spec

    return find_spec("bokeh") is not None
