"""The devices of a run as its command sees them: which ones work, what each holds, and what each has done."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from distributed import Future

from tunesmith.bench import Job
from tunesmith.records import Problem, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.many_devices import Confirmation, DeviceShare

HELD = 2
"""Portions that a device holds: one that it works on, and one so that it does not wait for the command."""

SHOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One thing to measure, with its name among those of one request: a job in a race, or a confirmation."""

    name: str
    problem: Problem
    asked: Job | Confirmation
    race: int = 0

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self.asked.jobs if isinstance(self.asked, Confirmation) else (self.asked,)


class Purpose(Enum):
    """Why a device holds a portion: for the step, for a visit of the anchor, or for the anchor before it may work."""

    WORK = auto()
    VISIT = auto()
    ADMISSION = auto()


@dataclass(eq=False)
class SentPortion:
    """A portion that a device holds. `waiting` are its items without a result, by name, in the order sent."""

    number: int
    items: Mapping[str, WorkItem]
    future: Future
    purpose: Purpose
    needs_programs: bool = False
    waiting: dict[str, WorkItem] = field(default_factory=dict)
    began: float | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        self.waiting = dict(self.items)


@dataclass(eq=False)
class ClusterDevice:
    """A device, at the address of its worker process; the address is empty while it has none. `opening` is the task
    that opens it, which Dask drops if nobody holds it."""

    name: str
    address: str
    held: deque[SentPortion] = field(default_factory=deque)
    busy: float = 0.0
    measured: int = 0
    admitted: bool = False
    left_out: str = ""
    problem: Problem | None = None
    opening: Future | None = None

    @property
    def works(self) -> bool:
        return bool(self.address) and self.admitted and not self.left_out

    @property
    def has_room(self) -> bool:
        return self.works and len(self.held) < HELD

    def portion(self, number: int) -> SentPortion | None:
        return next((portion for portion in self.held if portion.number == number), None)

    def busy_seconds(self, now: float) -> float:
        """Seconds spent on portions, with those of the portion that it works on."""
        running = self.held[0].began if self.held else None
        return self.busy + (now - running if running is not None else 0.0)


class Fleet:
    """All devices of a run, by name, also those that are gone."""

    def __init__(self, observe: events.Observer) -> None:
        self._observe = observe
        self._devices: dict[str, ClusterDevice] = {}
        self._began: float | None = None
        self._shown = time.monotonic()

    def __iter__(self) -> Iterator[ClusterDevice]:
        return iter(list(self._devices.values()))

    @property
    def working(self) -> list[str]:
        """The names of the devices that work."""
        return [device.name for device in self._devices.values() if device.works]

    def get(self, name: str) -> ClusterDevice | None:
        return self._devices.get(name)

    def at(self, address: str) -> ClusterDevice | None:
        return next((device for device in self._devices.values() if device.address == address), None)

    def join(self, name: str, address: str) -> ClusterDevice:
        """A device that has joined. One that comes back keeps its figures, and is admitted if it was."""
        device = self._devices.setdefault(name, ClusterDevice(name, address))
        device.address = address
        return device

    def holder(self, number: int) -> tuple[ClusterDevice, SentPortion] | None:
        """The device that holds a portion; None if it was taken from it."""
        for device in self._devices.values():
            if portion := device.portion(number):
                return device, portion
        return None

    def begin(self, portion: SentPortion) -> None:
        """A device has begun a portion. The first one begins the time by which shares are counted."""
        portion.began = time.monotonic()
        self._began = self._began or portion.began

    def shares(self) -> tuple[DeviceShare, ...]:
        """What each device did so far."""
        now = time.monotonic()
        elapsed = now - self._began if self._began is not None else 0.0
        return tuple(
            DeviceShare(
                device.name,
                min(1.0, device.busy_seconds(now) / elapsed) if elapsed > 0 else 0.0,
                device.measured,
                left_out=device.left_out,
            )
            for device in sorted(self._devices.values(), key=lambda device: device.name)
        )

    def show(self) -> None:
        """Tell the observer what the devices do, at most once a second."""
        now = time.monotonic()
        if self._began is None or now - self._shown < SHOW_SECONDS:
            return
        self._shown, elapsed = now, max(now - self._began, 1e-9)
        busy = {share.device: share.busy for share in self.shares()}
        self._observe(
            events.DevicesShown(
                tuple(
                    events.DeviceState(
                        device.name, busy[device.name], device.measured / elapsed, str(device.problem or "")
                    )
                    for device in self._devices.values()
                    if device.works
                )
            )
        )


def is_interchangeable(target: Target, other: Target) -> bool:
    """Whether a measurement on one of two devices counts for the other: they are equal but for selector and memory."""
    alike = replace(
        other,
        selector=target.selector,
        global_memory_bytes=target.global_memory_bytes,
        max_allocation_bytes=target.max_allocation_bytes,
    )
    return target == alike


def kinds_of(targets: Iterable[Target]) -> list[Target]:
    """The target of each kind of device: the first one's, with the least memory of all of its kind."""
    kinds: list[Target] = []
    for target in targets:
        known = next((index for index, kind in enumerate(kinds) if is_interchangeable(kind, target)), None)
        if known is None:
            kinds.append(target)
        else:
            kinds[known] = replace(
                kinds[known],
                global_memory_bytes=min(kinds[known].global_memory_bytes, target.global_memory_bytes),
                max_allocation_bytes=min(kinds[known].max_allocation_bytes, target.max_allocation_bytes),
            )
    return kinds
