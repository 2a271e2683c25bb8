"""Finds the device that a logic was made on, or a device for calls without a logic."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tunesmith.devices import APIS, Device, FoundDevice, choose, is_full_selector, open_device
from tunesmith.devices.choice import SELECTOR_VARIABLE
from tunesmith.kernels import KERNELS
from tunesmith.logic import Logic
from tunesmith.records import ProblemType, Target, UserError

Logics = Sequence[tuple[Path, Logic]]


class DeviceAbsentError(UserError):
    """This machine has none of the devices that the logics were made on."""


def check_distinct(logics: Logics) -> None:
    """Raises UserError, naming both files, if two logics are for the same problem type and device."""
    files: dict[tuple[str, str, str, ProblemType], Path] = {}
    for file, logic in logics:
        origin, kind = logic.document.origin, logic.document.problem_type
        first = files.setdefault((origin.api, origin.device, origin.architecture, kind), file)
        if first is not file:
            raise UserError(str(file), f"has the same problem type and device as {first}", "load one of them")


def open_for(logics: Logics, requested: Device | str | None) -> tuple[Device, Logics]:
    """The device to use, and the logics to use on it.

    The device is the requested one, else the first of the logics' devices that this machine has. The logics are those
    made on that device. If none was made on a requested device, all logics in a language that it runs are used.
    Raises DeviceAbsentError if there is no logic, if this machine has none of the logics' devices (the error names both
    sets), and if the requested device runs the language of none of the logics.
    """
    if not logics:
        raise no_logic()
    device = requested if isinstance(requested, Device) else open_device(_named(requested or _first_present(logics)))
    languages = set(APIS[device.target.api].languages)
    runnable = [(file, logic) for file, logic in logics if _languages(logic) <= languages]
    if not runnable:
        if device is not requested:
            device.close()
        raise _no_common_language(logics, device.target)
    own = [(file, logic) for file, logic in runnable if logic.document.origin.is_of(device.target)]
    for _, logic in own:
        tuned_with, present = logic.document.origin.driver, device.target.driver
        if tuned_with != present:
            what = f"the logic was made with driver {tuned_with!r}, here is {present!r}; others may be faster now"
            warnings.warn(what, stacklevel=2)
    return device, own or runnable


def open_gpu(logics: Logics, selector: str) -> tuple[Device, Logics, DeviceAbsentError | None]:
    """The GPU that tensors lie on, with the logics made on it, or the error that says why there are none. The thread's
    current context is left unchanged."""
    with context_kept():
        device = open_device(selector)
        origins = [logic.document.origin for _, logic in logics]
        if any(origin.is_of(device.target) for origin in origins):
            return *open_for(logics, device), None
    if not logics:
        return device, (), no_logic()
    made_on = ", ".join(dict.fromkeys(f"{origin.device} ({origin.api})" for origin in origins))
    what = f"was made on {made_on}; the tensors lie on {device.target.name} ({selector})"
    remedy = f"tune on it, or use it there all the same: load(..., device={selector!r})"
    return device, (), DeviceAbsentError(str(logics[0][0]), what, remedy)


def open_untuned(requested: Device | str | None) -> Device:
    """The device for arrays on the host if no logic was made on a device of this machine: the requested device, else
    the device of the variable TUNESMITH_DEVICE, else the host's CPU through OpenCL, else the first usable device.
    Raises UserError if there is no usable device."""
    if isinstance(requested, Device):
        return requested
    device = _named(requested or _host_target())
    is_cuda = (device if isinstance(device, str) else device.selector).startswith("CUDA:")
    with context_kept() if is_cuda else nullcontext():
        return open_device(device)


def _named(device: Target | str) -> Target | str:
    """A device or a full selector as it is, since it is opened without a search; for another selector, the first device
    that matches."""
    return device if isinstance(device, Target) or is_full_selector(device) else choose(device)


def _host_target() -> Target:
    # OpenCL is searched in this process: `choose` tries devices out in processes of their own, which takes a second.
    found = () if os.environ.get(SELECTOR_VARIABLE) else _found("OpenCL")
    cpus = (device.target for device in found if device.target and device.usable and device.target.kind == "CPU")
    return next(cpus, None) or choose()


def context_kept() -> AbstractContextManager[None]:
    """A context manager that restores the thread's current CUDA context. Only programs that use CUDA import it."""
    from tunesmith.devices.cuda.device import context_kept

    return context_kept()


def no_logic() -> DeviceAbsentError:
    return DeviceAbsentError("tunesmith", "no logic is loaded", "tune, and load the logic: tunesmith.load(FOLDER)")


def absent(file: Path, logic: Logic, target: Target) -> DeviceAbsentError:
    """The error for a request of a logic that is not used on the library's device."""
    origin = logic.document.origin
    what = f"was made on {origin.device} ({origin.api}); the library works on {target.name} ({target.selector})"
    return DeviceAbsentError(str(file), what, "tune on this device, or load that file alone with device=...")


def _languages(logic: Logic) -> set[str]:
    return {KERNELS[named.solution.kernel].language for named in logic.document.solutions}


def _no_common_language(logics: Logics, target: Target) -> DeviceAbsentError:
    needed = " and ".join(sorted(set().union(*(_languages(logic) for _, logic in logics))))
    offered = " and ".join(APIS[target.api].languages)
    what = f"its kernels are in {needed}, {target.name} ({target.selector}) runs only {offered}"
    remedy = "tune on that device, or name one that runs them: load(..., device=...)"
    return DeviceAbsentError(str(logics[0][0]), what, remedy)


def _first_present(logics: Logics) -> Target:
    origins = [logic.document.origin for _, logic in logics]
    found = {api: _found(api) for api in dict.fromkeys(origin.api for origin in origins)}
    for origin in origins:
        for device in found[origin.api]:
            if device.target and device.usable and origin.is_of(device.target):
                return device.target
    made_on = ", ".join(dict.fromkeys(f"{origin.device} ({origin.api})" for origin in origins))
    devices = [device for of_api in found.values() for device in of_api]
    present = ", ".join(f"{device.name}: {device.problem}" if device.problem else device.name for device in devices)
    remedy = "tune on this machine, or name a device to use all the same: load(..., device=...)"
    raise DeviceAbsentError(str(logics[0][0]), f"was made on {made_on}; here: {present or 'nothing'}", remedy)


def _found(api: str) -> tuple[FoundDevice, ...]:
    try:
        return APIS[api].find()
    except (KeyError, ImportError) as error:
        return (FoundDevice(api, problem=f"cannot be used ({error.args[0]})"),)
