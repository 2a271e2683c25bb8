"""Opening what a command measures on: workers of this host under a scheduler of its own, or a cluster that is there."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.records import Target, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame.many_devices import BenchFactory, ManyDevices

from .bench import ClusterBench
from .connection import CONNECT_SECONDS, ClusterConnection
from .devices import is_interchangeable, kinds_of
from .local import LocalHost, RunningScheduler, spawner
from .messages import Role, compiler_versions
from .process import SchedulerStart, WorkerStart
from .selectors import HostDevice, host_devices

Say = Callable[[str], None]

LEAST_CORES = 2
"""A GPU's process has cores of its own if each GPU gets at least so many: one to launch on, one for references."""

FIRST_DEVICE_SECONDS = 600.0
"""How long a command waits for the first device of a cluster; a batch system may take its time to start workers."""

SETTLE_SECONDS = 1.0
"""After the first device, how long no other may join before the kinds of devices are taken as known."""


@dataclass(frozen=True)
class OpenCluster:
    """A cluster with at least one device. `kinds` has a target for each kind of device in it."""

    connection: ClusterConnection
    kinds: tuple[Target, ...]

    def benches_for(self, kind: Target) -> BenchFactory:
        """Makes the benches of a run on devices of this kind. Other targets are measured on the command's own host."""

        def bench(target: Target, policy: Policy, cache: Path, observe: events.Observer) -> ManyDevices | None:
            del cache  # each worker has its own: hosts need not share a folder
            if not is_interchangeable(kind, target):
                return None
            return ClusterBench(self.connection, kind, policy, observe)

        return bench


@contextmanager
def open_local(devices: str, cache: Path, say: Say) -> Iterator[OpenCluster]:
    """Workers of this host, and a scheduler for them. They end with the context, and with this process."""
    with ExitStack() as opened:
        processes = opened.enter_context(spawner())
        # Dask is imported there while the devices are tried out here.
        starting = opened.enter_context(ThreadPoolExecutor(1)).submit(
            RunningScheduler.start, processes, SchedulerStart()
        )
        chosen = host_devices(devices)
        scheduler = starting.result()
        if scheduler.dashboard:
            say(f"Dask's dashboard: {scheduler.dashboard}")
        host = LocalHost(processes, worker_starts(chosen, scheduler.address, "", cache), say)
        opened.callback(host.close)
        while not host.settled:
            time.sleep(0.05)
        if host.failures and set(host.failures) >= {device.name for device in chosen}:
            raise next(iter(host.failures.values()))
        connection = ClusterConnection(scheduler.address)
        opened.callback(connection.close)
        yield OpenCluster(connection, _kinds(connection))


def connected(address: str) -> ClusterConnection:
    """A connection to a scheduler, by its address or the path of its file. Waits a while for a file to appear."""
    if "://" in address:
        return ClusterConnection(address)
    deadline = time.monotonic() + CONNECT_SECONDS
    while not Path(address).is_file():
        if time.monotonic() > deadline:
            remedy = "write tcp://HOST:PORT, tls://HOST:PORT, or the path of a scheduler file"
            raise UserError("--cluster", f"{address!r} is neither an address nor a file that exists", remedy)
        time.sleep(0.2)
    return ClusterConnection(scheduler_file=address)


@contextmanager
def open_remote(address: str, wait_for: int, say: Say, warn: Say) -> Iterator[OpenCluster]:
    """A cluster that is there: `address` is a scheduler's, or the path of its file. Waits for so many devices.
    `warn` is told if the scheduler is open to others."""
    connection = connected(address)
    with ExitStack() as opened:
        opened.callback(connection.close)
        if is_exposed(connection.address):
            warn(
                f"the scheduler at {connection.address} is neither on this host nor protected: whoever reaches it can"
                " run programs as you on every worker (docs/many-devices.md, Safety)"
            )
        if connection.dashboard:
            say(f"Dask's dashboard: {connection.dashboard}")
        _wait_for(connection, wait_for, say)
        yield OpenCluster(connection, _kinds(connection))


@dataclass(frozen=True)
class JoinedHost:
    """This host's workers in somebody else's cluster."""

    host: LocalHost
    devices: tuple[str, ...]

    @property
    def has_ended(self) -> bool:
        """Whether the scheduler is gone, or every device was given up."""
        return self.host.scheduler_lost.is_set() or self._all_failed

    def raise_failures(self) -> None:
        """Raise the first device's UserError if every device was given up."""
        if self._all_failed:
            raise self.host.failures[self.devices[0]]

    @property
    def _all_failed(self) -> bool:
        return set(self.devices) <= set(self.host.failures)


@contextmanager
def joined(address: str, devices: str, name: str, cache: Path, processes: int, say: Say) -> Iterator[JoinedHost]:
    """Workers of this host that join a cluster; `processes` compile at once (0: one for two cores). They end with the
    context. Raises UserError if the devices are not there or the scheduler cannot be reached."""
    chosen = host_devices(devices)
    connection = connected(address)
    scheduler = connection.address
    connection.close()
    starts = worker_starts(chosen, scheduler, name, cache, processes)
    names = tuple(start.device for start in starts if start.role is Role.DEVICE)
    with spawner() as processes_of_host:
        host = LocalHost(processes_of_host, starts, say)
        try:
            say(f"{len(names)} devices of {name} join the cluster at {scheduler}: {', '.join(names)}")
            yield JoinedHost(host, names)
        finally:
            host.close()


def worker_starts(
    devices: list[HostDevice], address: str, host: str, cache: Path, processes: int = 0
) -> list[WorkerStart]:
    """A worker for each device, and one that compiles for them if they are GPUs. Device names end with `@host`.

    If all are GPUs, they share the host's cores (logical processors) evenly: references are computed on a device's own
    cores, since the threads of several processes that all use every core slow each other down. Compiling takes half as
    many processes as there are cores.
    """
    cores = sorted(os.sched_getaffinity(0))
    each = 0 if any(device.target.shares_the_host for device in devices) else len(cores) // len(devices)
    starts = [
        WorkerStart(
            address,
            Role.DEVICE,
            host,
            cache,
            device=f"{device.name}@{host}" if host else device.name,
            target=None if device.cores else device.target,
            selector=device.target.selector,
            cores=device.cores or _share(cores, number, each),
            part=device.part,
            toolchains=compiler_versions(device.target) if device.part else None,
        )
        for number, device in enumerate(devices)
    ]
    if any(not device.target.shares_the_host for device in devices):
        count = processes or max(1, len(cores) // 2)
        starts.insert(0, WorkerStart(address, Role.COMPILER, host, cache, processes=count))
    return starts


def _share(cores: Sequence[int], number: int, each: int) -> tuple[int, ...]:
    """So many cores for the device of this number; none of its own if there are too few for each to have two."""
    return tuple(cores[number * each : (number + 1) * each]) if each >= LEAST_CORES else ()


def host_name() -> str:
    return socket.gethostname().partition(".")[0]


def is_exposed(address: str) -> bool:
    """Whether others than this host's users may reach a scheduler without a key: plain TCP beyond loopback."""
    protocol, _, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    if protocol != "tcp":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _wait_for(connection: ClusterConnection, count: int, say: Say) -> None:
    began, is_told = time.monotonic(), False
    while True:
        found = len(connection.devices())
        if found >= count:
            time.sleep(SETTLE_SECONDS)
            if len(connection.devices()) == found or count > 1:
                return
            continue
        if time.monotonic() - began > FIRST_DEVICE_SECONDS:
            what = f"{found} of {count} devices joined within {FIRST_DEVICE_SECONDS:g} s"
            raise UserError("--cluster", what, "start `tunesmith worker --cluster ...` on the hosts that have them")
        if not is_told:
            say(f"{found} of {count} devices have joined the cluster; waiting for the others")
            is_told = True
        connection.next_news(0.2)


def _kinds(connection: ClusterConnection) -> tuple[Target, ...]:
    return tuple(kinds_of(member.target for member in connection.devices().values() if member.target))
