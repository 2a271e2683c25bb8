"""The device that a logic was made on, found again on this machine; and the device where no logic names one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tunesmith.devices import APIS, Device, Found, choose, open_device
from tunesmith.devices.choice import SELECTOR_VARIABLE
from tunesmith.devices.cuda.device import context_kept
from tunesmith.kernels import KERNELS
from tunesmith.logic import Logic
from tunesmith.records import ProblemType, Target, UserError

Logics = Sequence[tuple[Path, Logic]]


class DeviceAbsentError(UserError):
    """No device that the logics were made on is here."""


def no_two_alike(logics: Logics) -> None:
    """Raises UserError, naming both files, when two would answer for one problem type on one device."""
    seen: dict[tuple[str, str, str, ProblemType], Path] = {}
    for file, logic in logics:
        origin, kind = logic.document.origin, logic.document.problem_type
        first = seen.setdefault((origin.api, origin.device, origin.architecture, kind), file)
        if first is not file:
            raise UserError(str(file), f"has the same problem type and device as {first}", "load one of them")


def open_for(logics: Logics, asked: Device | str | None) -> tuple[Device, Logics]:
    """The device and the logics made on it: the one that was asked for, else the first of the logics' that is here.

    Logics of other devices serve only where a device was asked for and none was made on it. Raises UserError, naming
    the logics' devices and those that are here, when none of them is, and where the device that was asked for runs the
    language of none (a DeviceAbsentError, as it is without a logic).
    """
    if not logics:
        raise _no_logic()
    device = asked if isinstance(asked, Device) else open_device(asked or _first_here(logics))
    every = [(file, logic) for file, logic in logics if _languages(logic) <= set(APIS[device.target.api].languages)]
    if not every:
        if device is not asked:
            device.close()
        raise _speechless(logics, device.target)
    own = [(file, logic) for file, logic in every if logic.document.origin.is_of(device.target)]
    for _, logic in own:
        made, here = logic.document.origin.driver, device.target.driver
        if made != here:
            what = f"the logic was made with driver {made!r}, here is {here!r}; others may be faster now"
            warnings.warn(what, stacklevel=2)
    return device, own or every


def open_gpu(logics: Logics, selector: str) -> tuple[Device, Logics, DeviceAbsentError | None]:
    """The GPU that tensors lie on, with the logics made on it, or why there are none. The thread's current context
    stays what it was."""
    with context_kept():
        device = open_device(selector)
        origins = [logic.document.origin for _, logic in logics]
        if any(origin.is_of(device.target) for origin in origins):
            return *open_for(logics, device), None
    if not logics:
        return device, (), _no_logic()
    made_on = ", ".join(dict.fromkeys(f"{origin.device} ({origin.api})" for origin in origins))
    what = f"was made on {made_on}; the tensors lie on {device.target.name} ({selector})"
    remedy = f"tune on it, or use it there all the same: load(..., device={selector!r})"
    return device, (), DeviceAbsentError(str(logics[0][0]), what, remedy)


def open_untuned(asked: Device | str | None) -> Device:
    """The device for the host's memory where no logic was made on one that is here: the one that was asked for, else
    that of the variable TUNESMITH_DEVICE, else the host's CPU through OpenCL, else the first that is usable. Raises
    UserError where there is none."""
    if isinstance(asked, Device):
        return asked
    wanted = asked or _host_target()
    is_cuda = (wanted if isinstance(wanted, str) else wanted.selector).startswith("CUDA:")
    with context_kept() if is_cuda else nullcontext():
        return open_device(wanted)


def _host_target() -> Target:
    # Asked in this process: trying devices out takes processes of their own, and a second.
    found = () if os.environ.get(SELECTOR_VARIABLE) else _found("OpenCL")
    cpus = (device.target for device in found if device.target and device.usable and device.target.kind == "CPU")
    return next(cpus, None) or choose()


def _no_logic() -> DeviceAbsentError:
    return DeviceAbsentError("tunesmith", "no logic is loaded", "tune, and load the logic: tunesmith.load(FOLDER)")


def absent(file: Path, logic: Logic, target: Target) -> DeviceAbsentError:
    """For who asks for a logic that is not used on the device that the library works on."""
    origin = logic.document.origin
    what = f"was made on {origin.device} ({origin.api}); the library works on {target.name} ({target.selector})"
    return DeviceAbsentError(str(file), what, "tune on this device, or load that file alone with device=...")


def _languages(logic: Logic) -> set[str]:
    return {KERNELS[named.solution.kernel].language for named in logic.document.solutions}


def _speechless(logics: Logics, target: Target) -> DeviceAbsentError:
    written = " and ".join(sorted(set().union(*(_languages(logic) for _, logic in logics))))
    runs = " and ".join(APIS[target.api].languages)
    what = f"its kernels are in {written}, {target.name} ({target.selector}) runs only {runs}"
    remedy = "tune on that device, or name one that runs them: load(..., device=...)"
    return DeviceAbsentError(str(logics[0][0]), what, remedy)


def _first_here(logics: Logics) -> Target:
    origins = [logic.document.origin for _, logic in logics]
    found = {api: _found(api) for api in dict.fromkeys(origin.api for origin in origins)}
    for origin in origins:
        for one in found[origin.api]:
            if one.target and one.usable and origin.is_of(one.target):
                return one.target
    made_on = ", ".join(dict.fromkeys(f"{origin.device} ({origin.api})" for origin in origins))
    every = [one for ones in found.values() for one in ones]
    here = ", ".join(f"{one.name}: {one.problem}" if one.problem else one.name for one in every)
    remedy = "tune on this machine, or name a device to use all the same: load(..., device=...)"
    raise DeviceAbsentError(str(logics[0][0]), f"was made on {made_on}; here: {here or 'nothing'}", remedy)


def _found(api: str) -> tuple[Found, ...]:
    try:
        return APIS[api].find()
    except (KeyError, ImportError) as error:
        return (Found(api, problem=f"cannot be used ({error.args[0]})"),)
