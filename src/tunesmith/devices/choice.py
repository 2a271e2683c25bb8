"""Finding devices and choosing one of them.

Drivers are strangers: a broken one may crash or hang when it is loaded, or compile nothing. So every native API is
asked, and every device tried out, in a process of its own with a time limit; the caller's process loads no driver.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from tunesmith.records import Registry, Target, UserError
from tunesmith.toolchains import driver_cache

from .api import Api, Found
from .base import Device

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
"""Found only when a selector names them."""

FIND_SECONDS, TRIAL_SECONDS = 60.0, 180.0
"""Time limits; a first compilation by PoCL has been seen to take 20 s on an idle machine."""

SELECTOR_VARIABLE = "TUNESMITH_DEVICE"

_MORE = "`tunesmith devices` shows more"

_COMMAND = (sys.executable, "-m", "tunesmith.devices.trial")


def environment(cache_dir: Path) -> dict[str, str]:
    """Variables for a process that compiles or times, to be set before it loads a driver.

    PoCL compiles at the first launch and keeps the machine code under POCL_CACHE_DIR: processes with the same
    `cache_dir`, a run's, compile once between them. The code lies with the user and not in `cache_dir`, since PoCL
    loads whatever it finds (`toolchains.driver_cache`). POCL_AFFINITY pins PoCL's threads, one a core, which steadies
    timing.
    PYOPENCL_NO_CACHE stays unset: PyOpenCL's own cache (under XDG_CACHE_HOME) is for drivers without one.
    """
    return {"POCL_CACHE_DIR": str(driver_cache(cache_dir)), "POCL_AFFINITY": "1"}


def discover(selector: str = "", check: bool = True) -> tuple[Found, ...]:
    """Every device of every API, GPUs before CPUs, then what is missing with its remedy.

    `selector` narrows it to one API (`OpenCL:...`); `check` lets each device compile and run a small kernel.
    """
    named = selector.partition(":")[0]
    apis = [named] if named in APIS else [name for name in APIS if name not in HIDDEN]
    found = [one for name in apis for one in _find(name)]
    checked = [tried(one) if check else one for one in found]
    return tuple(sorted(checked, key=_rank))


def asks_for_hidden(selector: str | None) -> bool:
    """Whether this selector, or TUNESMITH_DEVICE without one, names an API that a search does not show."""
    wanted = selector if selector is not None else os.environ.get(SELECTOR_VARIABLE, "")
    return wanted.partition(":")[0] in HIDDEN


def choose(selector: str | None = None, languages: Collection[str] = ()) -> Target:
    """The device to use: by selector (`OpenCL:0:0`), kind (`CPU`, `GPU`) or part of a name, else TUNESMITH_DEVICE, else
    the first usable.

    GPUs come before CPUs. With `languages` (those of a file), only devices that run one of them are considered. The
    chosen one has compiled and run a kernel. Raises UserError, with what there is, when none fits.
    """
    wanted = selector if selector is not None else os.environ.get(SELECTOR_VARIABLE, "")
    location = "device" if selector is not None or not wanted else SELECTOR_VARIABLE
    found = discover(wanted, check=False)
    matching = [one for one in found if one.target and _matches(one.target, wanted)]
    fitting = [one for one in matching if one.target and _runs(one.target, languages)]
    failed = []
    for one in map(tried, fitting):
        if one.target and one.usable:
            return one.target
        failed.append(one)
    if matching and not fitting:
        raise _speechless(location, matching, languages)
    raise _nothing(location, wanted, failed or [one for one in found if one.problem], found)


def open_device(device: Target | str) -> Device:
    """The live device for a target or a full selector, opened in this process; UserError when it has gone."""
    if isinstance(device, Target):
        return APIS[device.api].open(device)
    api, colon, _ = device.partition(":")
    if not colon or api not in APIS:
        shown = ", ".join(name for name in APIS if name not in HIDDEN)
        raise UserError("device", f"{device!r} is no selector", f"write API:number, where API is one of {shown}")
    found = APIS[api].find()
    for one in found:
        if one.target and one.target.selector == device:
            return APIS[api].open(one.target)
    raise _nothing("device", device, [one for one in found if one.problem], found)


def tried(found: Found) -> Found:
    """The same device after it compiled and ran a kernel, with a problem if it did not."""
    if found.target is None or not found.usable or APIS[found.target.api].trial is None:
        return found
    problem = _trial(found.target.api, found.target.selector)
    remedy = f"update or remove the driver of {found.name!r}, or choose another device"
    return dataclasses.replace(found, problem=problem, remedy=remedy) if problem else found


def _find(api: str) -> tuple[Found, ...]:
    try:
        if APIS[api].trial is None:
            return APIS[api].find()
    except ImportError as error:
        return (Found(api, problem=f"cannot be loaded: {error}", remedy=f"install what {error.name} belongs to"),)
    except UserError as error:
        return (Found(api, problem=f"{error.location}: {error.what}", remedy=error.remedy),)
    answer, problem = _ask(FIND_SECONDS, "find", api)
    if problem:
        return (Found(api, problem=f"looking for devices {problem}", remedy="update or remove its driver"),)
    return tuple(map(_found, answer))


@cache
def _trial(api: str, selector: str) -> str:
    """What went wrong, or nothing. Remembered within a process: a driver does not change under it."""
    answer, problem = _ask(TRIAL_SECONDS, "trial", api, selector)
    return f"compiling and running a small kernel {problem}" if problem else str(answer)


def _ask(seconds: float, *arguments: str) -> tuple[Any, str]:
    """What `_trial.py` answers in a process of its own, and how that process failed."""
    try:
        done = subprocess.run(
            [*_COMMAND, *arguments], capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return "", f"took more than {seconds:.0f} s"
    if done.returncode < 0:
        return "", f"crashed with signal {-done.returncode}"
    if done.returncode:
        return "", f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    # A driver may print on its own, so the answer is the last line.
    return json.loads(done.stdout.splitlines()[-1]), ""


def _found(raw: dict[str, Any]) -> Found:
    target = raw.pop("target")
    return Found(**raw, target=Target(**target) if target else None)


def _rank(found: Found) -> int:
    if found.target is None:
        return 3
    return 2 if found.problem else 1 if found.target.kind == "CPU" else 0


def _matches(target: Target, wanted: str) -> bool:
    return (
        target.selector == wanted
        or target.selector.startswith(f"{wanted}:")
        or target.kind == wanted.upper()
        or wanted.lower() in target.name.lower()
    )


def _runs(target: Target, languages: Collection[str]) -> bool:
    return not languages or any(language in languages for language in APIS[target.api].languages)


def _nothing(location: str, wanted: str, failed: Collection[Found], found: Collection[Found]) -> UserError:
    what = f"no usable device matches {wanted!r}" if wanted else "no usable device"
    why = _problems(failed)
    return UserError(location, f"{what}{': ' + why if why else ''}", f"found: {_here(found)}; {_MORE}")


def _speechless(location: str, matching: Collection[Found], languages: Collection[str]) -> UserError:
    """For devices that are there, none of which runs a language of the file."""
    found = discover(check=False)
    targets = [one.target for one in matching if one.target]
    runs = (f"{one.name} ({one.selector}) is there, but runs only {_spoken(one)}" for one in targets)
    what = f"{'; '.join(runs)}, and the file needs {' or '.join(languages)}"
    able = [one for one in found if one.target and _runs(one.target, languages)]
    others = f"name one that does: {_here(able)}" if able else _problems([one for one in found if not one.target])
    return UserError(location, what, f"{others or 'none here does'}; {_MORE}")


def _spoken(target: Target) -> str:
    *others, last = APIS[target.api].languages
    return f"{', '.join(others)} and {last}" if others else last


def _here(found: Collection[Found]) -> str:
    return ", ".join(f"{one.target.selector} ({one.name})" for one in found if one.target) or "none"


def _problems(found: Collection[Found]) -> str:
    return "; ".join(f"{one.name}: {one.problem} ({one.remedy})" for one in found if one.problem)
