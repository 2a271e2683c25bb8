"""Which cells go to which device, and in which portions. No clock, no device and no network: times are expectations.

All items of a group (one problem in one step) stay together on one device. Groups go out longest first, whenever a
device has room (Graham's LPT rule, SIAM Journal on Applied Mathematics 17, 1969, 416), so that expectations need only
be roughly right. Portions shrink towards the end of a step, as in guided self-scheduling (Polychronopoulos and Kuck,
IEEE Transactions on Computers 36, 1987, 1425).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT", bound=Hashable)

SHARE = 0.05
"""A portion takes in another group only up to this share of the seconds that are left for each device. Items of one
group may fill a portion: they stay on the device anyway."""

MOST = 16
"""The most items of a portion. Programs are compiled for a portion before it starts."""


@dataclass(frozen=True)
class CellGroup(Generic[ItemT]):
    """Items that stay together, with the expected seconds of each. Of two groups of equal seconds, the one with more
    `work` goes first."""

    key: Hashable
    items: Sequence[ItemT]
    seconds: float
    work: float = 0.0

    @property
    def total(self) -> float:
        return self.seconds * len(self.items)


@dataclass
class _OpenGroup(Generic[ItemT]):
    """A group whose items are not all sent. `device` is the device that has begun it; empty if none has."""

    group: CellGroup[ItemT]
    waiting: deque[ItemT]
    device: str = ""

    @property
    def left(self) -> float:
        return self.group.seconds * len(self.waiting)

    @property
    def rank(self) -> tuple[float, float]:
        return self.left, self.group.work


@dataclass
class Assignment(Generic[ItemT]):
    """The items of a step that are not sent yet. Ask `portion_for` when a device has room.

    `homes` holds the device of each group in the step before: its programs and references are there. A group goes to
    its home if the home has room early enough; otherwise the first device without work takes it. `homes` is updated.
    `_reserved` has the group that each device was told to expect (`next_for`).
    """

    homes: MutableMapping[Hashable, str]
    _open: dict[Hashable, _OpenGroup[ItemT]] = field(default_factory=dict)
    _reserved: dict[str, Hashable] = field(default_factory=dict)

    @staticmethod
    def of(
        groups: Iterable[CellGroup[ItemT]], homes: MutableMapping[Hashable, str], begun: Container[Hashable] = ()
    ) -> Assignment[ItemT]:
        """Groups that were `begun` earlier in the same step stay with their homes."""
        opened = {
            group.key: _OpenGroup(group, deque(group.items), homes.get(group.key, "") if group.key in begun else "")
            for group in groups
            if group.items
        }
        return Assignment(homes, opened)

    @property
    def left(self) -> int:
        """The number of items that are not sent."""
        return sum(len(group.waiting) for group in self._open.values())

    @property
    def seconds_left(self) -> float:
        """Expected seconds of the items that are not sent."""
        return sum(group.left for group in self._open.values())

    def portion_for(
        self, device: str, devices: Collection[str], most: int = MOST, is_ahead: bool = False
    ) -> list[ItemT]:
        """The next items for a device, at most `most`; empty if nothing is left for it. `devices` are all that work.

        `is_ahead`: the device is still at work. Then it begins no group of the last ones, one for each device, which
        another device may be free for sooner.
        """
        limit = SHARE * self.seconds_left / max(1, len(devices))
        portion: list[ItemT] = []
        seconds = 0.0
        while len(portion) < most and (group := self._next_group(device, devices)):
            if group.device != device:
                unbegun = sum(bool(other.waiting) and other.device not in devices for other in self._open.values())
                if (portion and seconds + group.left > limit) or (is_ahead and unbegun <= len(devices)):
                    break
            group.device = self.homes[group.group.key] = device
            portion.append(group.waiting.popleft())
            seconds += group.group.seconds
        return portion

    def next_for(self, device: str, devices: Collection[str]) -> ItemT | None:
        """The first item of the group that the device begins after its own, so that it can prepare for it; None if
        there is none. Another device takes that group only if no group is left that nobody expects."""
        unbegun = self._unbegun(devices)
        group = unbegun.get(self._reserved.pop(device, None))
        if group is None:
            taken = set(self._reserved.values())
            free = {key: other for key, other in unbegun.items() if key not in taken}
            group = self._first_of(free, device, devices)
        if group is None:
            return None
        self._reserved[device] = group.group.key
        return group.waiting[0]

    def give_back(self, key: Hashable, items: Sequence[ItemT]) -> None:
        """Take back items of a group that were sent and not measured, first of all that wait."""
        self._open[key].waiting.extendleft(reversed(items))

    def lose(self, device: str) -> None:
        """A device is gone: every group that it began may go to another device."""
        self._reserved.pop(device, None)
        for group in self._open.values():
            if group.device == device:
                group.device = ""
        for key in [key for key, home in self.homes.items() if home == device]:
            del self.homes[key]

    def _next_group(self, device: str, devices: Collection[str]) -> _OpenGroup[ItemT] | None:
        """The group that the device goes on with; else the one that it expects; else the first that no other expects,
        or of all."""
        if own := next((group for group in self._open.values() if group.waiting and group.device == device), None):
            return own
        unbegun = self._unbegun(devices)
        if expected := unbegun.get(self._reserved.get(device)):
            return expected
        elsewhere = {key for name, key in self._reserved.items() if name in devices}
        free = {key: group for key, group in unbegun.items() if key not in elsewhere}
        return self._first_of(free or unbegun, device, devices)

    def _unbegun(self, devices: Collection[str]) -> dict[Hashable, _OpenGroup[ItemT]]:
        """The groups that no living device has begun."""
        return {key: group for key, group in self._open.items() if group.waiting and group.device not in devices}

    def _first_of(
        self, groups: Mapping[Hashable, _OpenGroup[ItemT]], device: str, devices: Collection[str]
    ) -> _OpenGroup[ItemT] | None:
        """The longest whose home is this device or none; else the longest of another home, since that home has more to
        do than this device."""
        others = set(devices) - {device}
        near = [group for key, group in groups.items() if self.homes.get(key) not in others]
        return max(near or groups.values(), key=lambda group: group.rank, default=None)


def expected_seconds(
    works: Mapping[KeyT, float], known: Mapping[KeyT, tuple[float, float]], usual: float
) -> dict[KeyT, float]:
    """Seconds that an item of each group is expected to take: what the group's items took so far; else what those of
    the group with the most similar work took; else `usual`, and up to twice as much for the most work. `known` has work
    and seconds."""
    if not known:
        most = max(works.values(), default=0.0) or 1.0
        return {key: usual * (1 + work / most) for key, work in works.items()}

    def nearest(work: float) -> float:
        return min(known.values(), key=lambda other: abs(math.log(max(other[0], 1.0) / max(work, 1.0))))[1]

    return {key: known[key][1] if key in known else nearest(work) for key, work in works.items()}


def longest_idle(groups: Sequence[CellGroup[ItemT]], devices: int) -> float:
    """The share of a step for which the first device to finish waits for the last, if every expectation is right.

    Devices ask for a portion whenever they hold fewer than two; sending takes no time. Deterministic.
    """
    names = [str(number) for number in range(devices)]
    assignment, busy_until = Assignment.of(groups, {}), dict.fromkeys(names, 0.0)
    seconds = {id(item): group.seconds for group in groups for item in group.items}
    active = set(names)
    while active:
        device = min(sorted(active), key=lambda name: busy_until[name])
        portion = assignment.portion_for(device, names)
        if portion:
            busy_until[device] += sum(seconds[id(item)] for item in portion)
        else:
            active.discard(device)
    end = max(busy_until.values())
    return 1 - min(busy_until.values()) / end if end else 0.0
