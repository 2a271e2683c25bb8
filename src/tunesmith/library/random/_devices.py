"""The devices of generators, each opened once per process, with the programs that were compiled on them so far."""

from __future__ import annotations

import os
from contextlib import nullcontext
from functools import cache
from weakref import WeakKeyDictionary

from tunesmith.devices import APIS, Device, choose, open_device
from tunesmith.devices.choice import SELECTOR_VARIABLE
from tunesmith.devices.cuda.device import context_kept
from tunesmith.kernels import Kernel
from tunesmith.kernels.random import CudaRandom, OpenCLRandom
from tunesmith.library.launch._locks import call_lock
from tunesmith.library.launch._programs import Programs
from tunesmith.records import ProblemType, Rejection, Target, UserError

FAMILIES: tuple[Kernel, ...] = (CudaRandom(), OpenCLRandom())
"""Listed here since the registry's search for an operation's families loads the families of all operations."""

_OPENING = call_lock()


def cannot_run(kind: ProblemType, target: Target, reason: Rejection) -> UserError:
    return UserError(kind.name, f"not on {target.name}: {reason}", "give another shape, data type or device")


_PROGRAMS: WeakKeyDictionary[Device, Programs] = WeakKeyDictionary()


def programs_of(device: Device) -> Programs:
    """The programs of a device. All generators on the device share them."""
    with _OPENING:
        return _PROGRAMS.setdefault(device, Programs())


def device_for(requested: Device | str | None, selector: str) -> Device:
    """The requested device; else the device `selector`, on which a buffer lies; else the first usable device."""
    if isinstance(requested, Device):
        return requested
    with _OPENING:
        if requested is None and selector:
            return _opened(selector)
        return _opened(_chosen(requested, os.environ.get(SELECTOR_VARIABLE)))


def family_on(target: Target) -> Kernel:
    """The kernel family that runs on the device. Raises UserError if none does."""
    for kernel in FAMILIES:
        if kernel.language in APIS[target.api].languages:
            return kernel
    raise UserError("device", f"{target.name} runs no kernels of random numbers", "`tunesmith devices` shows others")


@cache
def _chosen(requested: str | None, variable: str | None) -> str:
    """The selector of the chosen device, cached since choosing starts processes. `variable` is the environment variable
    on which the choice depends, and thus a part of the cache's key."""
    return choose(requested, [kernel.language for kernel in FAMILIES]).selector


@cache
def _opened(selector: str) -> Device:
    with context_kept() if selector.startswith("CUDA:") else nullcontext():
        return open_device(selector)
