"""Finding devices and choosing one of them.

A broken driver may crash or hang when it is loaded, or fail to compile. So native APIs list their devices, and every
device is tried out, in another process with a time limit (`driver_process`). The caller's process loads no driver.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tunesmith.records import Registry, Target, UserError
from tunesmith.toolchains import driver_cache

from .api import Api, FoundDevice
from .base import Device

if TYPE_CHECKING:
    from .driver_process import DriverProcess

APIS: Registry[Api] = Registry(
    "device API",
    {
        "CUDA": "tunesmith.devices.cuda.device:Cuda",
        "OpenCL": "tunesmith.devices.opencl.device:OpenCL",
        "fake": "tunesmith.devices.fake:Fake",
    },
    group="tunesmith.devices",
)

HIDDEN = ("fake",)
"""APIs whose devices are found only if a selector names the API."""

FIND_SECONDS, TRIAL_SECONDS = 60.0, 180.0
"""Time limits. A first compilation by PoCL took 20 s on an idle machine."""

MOST_TRIALS = 8
"""Trials of GPUs that run at once."""

SELECTOR_VARIABLE = "TUNESMITH_DEVICE"

COMPILING = {"POCL_AFFINITY": "0"}
"""Variables of a process that only compiles. PoCL compiles in its own threads. If they were pinned, as in a process
that times, compilations of several processes would wait for the same core while another is idle."""

_MORE = "`tunesmith devices` shows more"

_SEARCHING = threading.RLock()
"""Held while devices are searched and tried out."""
os.register_at_fork(after_in_child=lambda: globals().update(_SEARCHING=threading.RLock()))
_listings: dict[str, tuple[FoundDevice, ...]] = {}
_trial_problems: dict[tuple[str, str], str] = {}
"""Devices found, by API, and problems of trials (or nothing), by API and selector. They are kept, since a driver does
not change while a process runs. An API without devices is asked again: its driver may have been installed meanwhile."""


def environment(cache_dir: Path) -> dict[str, str]:
    """Environment variables for a process that compiles or times. Set them before the process loads a driver.

    PoCL compiles at the first launch and keeps the machine code under POCL_CACHE_DIR, so that all processes of a run,
    which share `cache_dir`, compile a kernel once. That folder is the user's and not in `cache_dir`, since PoCL loads
    whatever it finds (`toolchains.driver_cache`). POCL_AFFINITY pins PoCL's threads, one to a core, which steadies
    timing. PYOPENCL_NO_CACHE stays unset: PyOpenCL's cache (under XDG_CACHE_HOME) serves drivers without a cache.
    """
    return {"POCL_CACHE_DIR": str(driver_cache(cache_dir)), "POCL_AFFINITY": "1"}


def discover(selector: str = "", check: bool = True) -> tuple[FoundDevice, ...]:
    """Every device of every API, GPUs before CPUs, then what is missing with its remedy.

    `selector` restricts the search to one API (`OpenCL:...`). With `check`, each device compiles and runs a small
    kernel.
    """
    with _SEARCHING, _started() as drivers:
        found = _found_by(selector, drivers)
        return tuple(sorted(_after_trials(found, drivers) if check else found, key=_rank))


def asks_for_hidden(selector: str | Target | None) -> bool:
    """Whether this device, or TUNESMITH_DEVICE if there is none, names an API that a search does not show."""
    if isinstance(selector, Target):
        return selector.api in HIDDEN
    requested = selector if selector is not None else os.environ.get(SELECTOR_VARIABLE, "")
    return requested.partition(":")[0] in HIDDEN


def choose(selector: str | Target | None = None, languages: Collection[str] = ()) -> Target:
    """The device to use: the first usable device that matches `selector`, or TUNESMITH_DEVICE without a selector.
    A Target, of a device that was chosen already and need not be on this host, is returned as it is.

    A selector is a full one (`OpenCL:0:0`), a kind (`CPU`, `GPU`) or part of a name. GPUs come before CPUs. With
    `languages` (those of a file), only devices that run one of them are considered. The chosen device has compiled and
    run a kernel. Raises UserError, which lists the devices, if none matches.
    """
    if isinstance(selector, Target):
        if not _runs(selector, languages):
            raise _no_common_language("device", [FoundDevice(selector.name, selector)], languages)
        return selector
    requested = selector if selector is not None else os.environ.get(SELECTOR_VARIABLE, "")
    location = "device" if selector is not None or not requested else SELECTOR_VARIABLE
    failed = []
    with _SEARCHING, _started() as drivers:
        found = sorted(_found_by(requested, drivers), key=_rank)
        matching = [device for device in found if device.target and _matches(device.target, requested)]
        suitable = [device for device in matching if device.target and _runs(device.target, languages)]
        for device in (after_trial(device, drivers) for device in suitable):
            if device.target and device.usable:
                return device.target
            failed.append(device)
    if matching and not suitable:
        raise _no_common_language(location, matching, languages)
    raise _no_match(location, requested, failed or [device for device in found if device.problem], found)


def begin_to_choose(selector: str | Target | None = None) -> None:
    """Begin a search in the background. `choose` with the same selector, which will soon be called, goes on with what
    has been found. Only a device whose API is named is tried out, since the caller may need another language."""
    requested = selector if selector is not None else os.environ.get(SELECTOR_VARIABLE, "")

    def search() -> None:
        with suppress(Exception):  # what fails will fail again where somebody asks
            if isinstance(requested, Target) or requested.partition(":")[0] in APIS:
                choose(requested)
            else:
                discover(requested, check=False)

    threading.Thread(target=search, name="tunesmith-devices", daemon=True).start()


def is_full_selector(selector: str) -> bool:
    """Whether it names an API and a device of it (`OpenCL:0:0`), so that no other API is searched."""
    api, colon, _ = selector.partition(":")
    return bool(colon) and api in APIS


def open_device(device: Target | str) -> Device:
    """The live device for a target or a full selector, opened in this process. UserError if it is no longer present."""
    target = device if isinstance(device, Target) else target_here(device)
    return APIS[target.api].open(target)


def target_here(selector: str) -> Target:
    """The target of a full selector, found by this process, which loads the driver. UserError if it is absent."""
    if not is_full_selector(selector):
        shown = ", ".join(name for name in APIS if name not in HIDDEN)
        raise UserError("device", f"{selector!r} is no selector", f"write API:number, where API is one of {shown}")
    found = APIS[selector.partition(":")[0]].find()
    for candidate in found:
        if candidate.target and candidate.target.selector == selector:
            return candidate.target
    raise _no_match("device", selector, [candidate for candidate in found if candidate.problem], found)


def _started() -> DriverProcess:
    from .driver_process import DriverProcess  # imported here since a program that opens a device directly needs none

    return DriverProcess()


def after_trial(found: FoundDevice, drivers: DriverProcess) -> FoundDevice:
    """The same device after it compiled and ran a kernel, with a problem if it did not."""
    if found.target is None or not found.usable or APIS[found.target.api].trial is None:
        return found
    problem = _trial(found.target.api, found.target.selector, drivers)
    remedy = f"update or remove the driver of {found.name!r}, or choose another device"
    return dataclasses.replace(found, problem=problem, remedy=remedy) if problem else found


def _after_trials(found: Sequence[FoundDevice], drivers: DriverProcess) -> Iterator[FoundDevice]:
    """Each device after its trial. Several GPUs of one API are tried out at once, each by a process of its own, since
    to open one takes a second. Another API may show the same GPU, which may refuse two processes: APIs take turns."""

    def alone(device: FoundDevice) -> FoundDevice:
        with _started() as own:
            return after_trial(device, own)

    def is_gpu(device: FoundDevice) -> bool:
        return device.target is not None and device.target.kind == "GPU"

    for (_, are_gpus), own in groupby(found, lambda device: (device.target and device.target.api, is_gpu(device))):
        devices = list(own)
        if are_gpus and len(devices) > 1:
            with ThreadPoolExecutor(min(len(devices), MOST_TRIALS)) as pool:
                yield from pool.map(alone, devices)
        else:
            yield from (after_trial(device, drivers) for device in devices)


def _found_by(selector: str, drivers: DriverProcess) -> list[FoundDevice]:
    """What is found by the API that `selector` names, or else by every API that is not hidden. Nothing is tried out."""
    api = selector.partition(":")[0]
    apis = [api] if api in APIS else [name for name in APIS if name not in HIDDEN]
    return [device for name in apis for device in _find(name, drivers)]


def _find(api: str, drivers: DriverProcess) -> tuple[FoundDevice, ...]:
    try:
        if APIS[api].trial is None:
            return APIS[api].find()
    except ImportError as error:
        return (FoundDevice(api, problem=f"cannot be loaded: {error}", remedy=f"install what {error.name} belongs to"),)
    except UserError as error:
        return (FoundDevice(api, problem=f"{error.location}: {error.what}", remedy=error.remedy),)
    if api in _listings:
        return _listings[api]
    answer, problem = drivers.ask(FIND_SECONDS, "find", api)
    if problem:
        return (FoundDevice(api, problem=f"looking for devices {problem}", remedy="update or remove its driver"),)
    found = tuple(map(_found, answer))
    if any(device.target for device in found):
        _listings[api] = found
    return found


def _trial(api: str, selector: str, drivers: DriverProcess) -> str:
    """The problem of a device's trial, or nothing."""
    if (api, selector) not in _trial_problems:
        answer, problem = drivers.ask(TRIAL_SECONDS, "trial", api, selector)
        _trial_problems[api, selector] = f"compiling and running a small kernel {problem}" if problem else str(answer)
    return _trial_problems[api, selector]


def _found(raw: dict[str, Any]) -> FoundDevice:
    target = raw["target"]
    return FoundDevice(**{**raw, "target": Target(**target) if target else None})


def _rank(found: FoundDevice) -> int:
    if found.target is None:
        return 3
    return 2 if found.problem else 1 if found.target.kind == "CPU" else 0


def _matches(target: Target, requested: str) -> bool:
    return (
        target.selector == requested
        or target.selector.startswith(f"{requested}:")
        or target.kind == requested.upper()
        or requested.lower() in target.name.lower()
    )


def _runs(target: Target, languages: Collection[str]) -> bool:
    return not languages or any(language in languages for language in APIS[target.api].languages)


def _no_match(
    location: str, requested: str, failed: Collection[FoundDevice], found: Collection[FoundDevice]
) -> UserError:
    what = f"no usable device matches {requested!r}" if requested else "no usable device"
    problems = _problems(failed)
    return UserError(location, f"{what}{': ' + problems if problems else ''}", f"found: {_listed(found)}; {_MORE}")


def _no_common_language(location: str, matching: Collection[FoundDevice], languages: Collection[str]) -> UserError:
    """The error if devices match, but none of them runs a language of the file."""
    found = discover(check=False)
    targets = [device.target for device in matching if device.target]
    runs = (f"{target.name} ({target.selector}) is there, but runs only {_languages(target)}" for target in targets)
    what = f"{'; '.join(runs)}, and the file needs {' or '.join(languages)}"
    able = [device for device in found if device.target and _runs(device.target, languages)]
    missing = [device for device in found if not device.target]
    others = f"name one that does: {_listed(able)}" if able else _problems(missing)
    return UserError(location, what, f"{others or 'none here does'}; {_MORE}")


def _languages(target: Target) -> str:
    *others, last = APIS[target.api].languages
    return f"{', '.join(others)} and {last}" if others else last


def _listed(found: Collection[FoundDevice]) -> str:
    return ", ".join(f"{device.target.selector} ({device.name})" for device in found if device.target) or "none"


def _problems(found: Collection[FoundDevice]) -> str:
    return "; ".join(f"{device.name}: {device.problem} ({device.remedy})" for device in found if device.problem)
