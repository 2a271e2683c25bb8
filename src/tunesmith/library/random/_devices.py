"""Devices that generators work on, each opened once a process, with the programs compiled on them so far."""

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
"""Not from the registry, whose search for an operation's families loads those of every other."""

_OPENING = call_lock()


def cannot_run(kind: ProblemType, target: Target, reason: Rejection) -> UserError:
    return UserError(kind.name, f"not on {target.name}: {reason}", "give another shape, data type or device")


_PROGRAMS: WeakKeyDictionary[Device, Programs] = WeakKeyDictionary()


def programs_of(device: Device) -> Programs:
    """Those of a device, which all its generators share."""
    with _OPENING:
        return _PROGRAMS.setdefault(device, Programs())


def device_for(asked: Device | str | None, selector: str) -> Device:
    """The device that was asked for; else `selector`, on which a buffer lies; without one the first that is usable."""
    if isinstance(asked, Device):
        return asked
    with _OPENING:
        if asked is None and selector:
            return _opened(selector)
        return _opened(_chosen(asked, os.environ.get(SELECTOR_VARIABLE)))


def family_on(target: Target) -> Kernel:
    """The kernels that run there."""
    for kernel in FAMILIES:
        if kernel.language in APIS[target.api].languages:
            return kernel
    raise UserError("device", f"{target.name} runs no kernels of random numbers", "`tunesmith devices` shows others")


@cache
def _chosen(asked: str | None, variable: str | None) -> str:
    """Remembered, since it starts processes; `variable`, the environment's, is what it depends on besides."""
    return choose(asked, [kernel.language for kernel in FAMILIES]).selector


@cache
def _opened(selector: str) -> Device:
    with context_kept() if selector.startswith("CUDA:") else nullcontext():
        return open_device(selector)
