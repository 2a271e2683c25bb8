"""What `--devices` means: which devices of this host get a worker process each."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tunesmith.devices import discover
from tunesmith.records import Target, UserError

OPTION = "--devices"
ALL = "all"


@dataclass(frozen=True, slots=True)
class HostDevice:
    """A device that gets a worker. A part of a CPU has `cores` of its own, and `part` says in words which share."""

    name: str
    target: Target
    cores: tuple[int, ...] = ()
    part: str = ""


def host_devices(text: str) -> list[HostDevice]:
    """The devices that `--devices` names: `all`, or selectors separated by commas.

    A selector is one as for `--device`, and means every usable device that it matches. `all` means all devices of the
    API and kind of the first usable device, so GPUs if there are any. `SELECTOR*N` divides a CPU into N parts of
    equally many cores; `fake:GPU:8*N` is N fake devices. Raises UserError if nothing matches.
    """
    devices: list[HostDevice] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        selector, star, count = word.partition("*")
        if star and not (count.isascii() and count.isdigit() and 1 <= int(count) <= 1024):
            raise UserError(OPTION, f"{word!r} has no whole number after *", "write a selector, or SELECTOR*PARTS")
        targets = _matching(selector)
        devices += _parts(targets[0], int(count)) if star else [HostDevice(t.selector, t) for t in targets]
    if not devices:
        raise UserError(OPTION, "names no device", f"write {ALL}, or selectors as `tunesmith devices` shows them")
    names = [device.name for device in devices]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise UserError(OPTION, f"{repeated} is named twice", "name each device once")
    return devices


def _matching(selector: str) -> list[Target]:
    """The usable devices that a selector matches; the first usable one's siblings for `all`."""
    is_all = selector == ALL
    found = discover("" if is_all else selector)
    usable = [device.target for device in found if device.target and device.usable]
    if is_all:
        return [target for target in usable if (target.api, target.kind) == (usable[0].api, usable[0].kind)]
    exact = [target for target in usable if target.selector == selector]
    matching = exact or [target for target in usable if _matches(target, selector)]
    if not matching:
        problems = "; ".join(f"{d.name}: {d.problem} ({d.remedy})" for d in found if d.problem)
        listed = ", ".join(f"{target.selector} ({target.name})" for target in usable) or "none"
        what = f"no usable device matches {selector!r}{': ' + problems if problems else ''}"
        raise UserError(OPTION, what, f"found: {listed}; `tunesmith devices` shows more")
    return matching


def _matches(target: Target, selector: str) -> bool:
    return (
        target.selector.startswith(f"{selector}:")
        or target.kind == selector.upper()
        or selector.lower() in target.name.lower()
    )


def _parts(target: Target, count: int) -> list[HostDevice]:
    if target.api == "fake":
        return [HostDevice(f"{target.selector}/{number}", target) for number in range(count)]
    if not target.shares_the_host:
        raise UserError(
            OPTION, f"{target.selector} is a GPU, which is measured whole", "leave out the * and the number"
        )
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // count
    if not each:
        raise UserError(OPTION, f"{len(cores)} cores cannot be {count} parts", f"give a number up to {len(cores)}")
    part = f"{each} of {len(cores)} cores"
    return [
        HostDevice(f"{target.selector}/{number}", target, tuple(cores[number * each : (number + 1) * each]), part)
        for number in range(count)
    ]
