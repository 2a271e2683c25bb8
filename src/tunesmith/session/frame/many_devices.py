"""A bench of several devices of one kind: what the frame asks it beyond what it asks any bench.

The cluster has the implementation. The frame imports no cluster: a command hands down a `BenchFactory`.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Bench, Job, Policy
from tunesmith.records import Measurement, Target

from . import events


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Finalists of one problem, to be measured interleaved on one device; `until_clear` as in `Bench.interleave`."""

    jobs: tuple[Job, ...]
    until_clear: bool


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """What one device of a run did.

    `busy` is the share of the time since the run's first measurement in which the device verified or timed. `measured`
    counts its measurements. `anchor` is its last time of the anchor over that of its siblings; None if unknown.
    `left_out` says why the device got no more work; empty if it did.
    """

    device: str
    busy: float
    measured: int
    anchor: float | None = None
    left_out: str = ""


Admission = Callable[[str, Measurement], bool]
"""Called with a device that joins and its measurement of the anchor; whether the device may work."""


class ManyDevices(Bench, ABC):
    """A bench whose devices are of one kind, so that a measurement of any of them counts for all.

    A device's name holds its selector and, if there are several hosts, its host. Every measurement says which device
    made it (`Measurement.device`). All jobs of one problem in one step (`Batch.step`) are measured on one device, as
    long as that device lives.
    """

    @property
    @abstractmethod
    def devices(self) -> tuple[str, ...]:
        """The names of the devices that work."""

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Begin what measuring these jobs will need, as far as that disturbs no device that measures. The default is
        to begin nothing."""

    @abstractmethod
    def everywhere(self, job: Job) -> Iterator[Measurement]:
        """Measure one job on every device."""

    @abstractmethod
    def interleave_many(self, asked: Sequence[Confirmation]) -> Iterator[tuple[int, list[Measurement]]]:
        """`interleave` for each of these, on all devices at once. Yields the index of each with its measurements."""

    @abstractmethod
    def leave_out(self, device: str, why: str) -> None:
        """Give a device no more work. `why` is a phrase for people."""

    @abstractmethod
    def admit_by(self, job: Job, admission: Admission) -> None:
        """From now on, a device that joins measures this job first, and works only if `admission` says so."""

    @abstractmethod
    def shares(self) -> tuple[DeviceShare, ...]:
        """What each device did so far, in the order of their names."""


def host_of(measurement: Measurement, target: Target) -> str:
    """The host and its device that measured, as the store has them. Without other knowledge, `target` on this host."""
    selector, _, host = (measurement.device or target.selector).partition("@")
    return measurement.host or f"{host or socket.gethostname()} {selector}"


BenchFactory = Callable[[Target, Policy, Path, events.Observer], ManyDevices | None]
"""Makes the bench for a target, with a policy, the cache's folder and an observer; None if its devices are not of this
kind, so that the run measures on its own host."""
