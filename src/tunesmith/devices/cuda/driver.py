"""The CUDA driver by `cuda.bindings.driver`: every call checked, its errors told apart.

The driver's own API and not `cuda.core`: its names have not moved since CUDA 12, it has tensor maps, memsets and
waits on memory, and a launch costs one call. What every launch calls goes by ctypes: see `entry`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from tunesmith.toolchains.forked import CUDA

from ..base import LaunchError

REMEDY = "pip install cuda-bindings, of the driver's major version"

LIBRARY = "libcuda.so.1"
"""The driver's, by which the bindings load it too."""

HARMLESS = {
    "INVALID_VALUE",
    "OUT_OF_MEMORY",
    "INVALID_IMAGE",
    "NO_BINARY_FOR_GPU",
    "UNSUPPORTED_PTX_VERSION",
    "INVALID_HANDLE",
    "NOT_FOUND",
    "NOT_READY",
    "LAUNCH_OUT_OF_RESOURCES",
    "NOT_SUPPORTED",
}
"""Errors after which the context goes on; every other one (illegal address, launch failed, timeout, ECC) sticks to it,
and with it to the process."""


@cache
def bindings() -> Any:
    """`cuda.bindings.driver`; raises ImportError where it is not installed. Loads no driver."""
    return importlib.import_module("cuda.bindings.driver")


def call(function: str, *arguments: Any) -> Any:
    """What a function of the driver returns beside its status: nothing, a value, or a tuple. Raises LaunchError, and
    UserError in a forked child whose parent has used the driver."""
    CUDA.use()
    driver = bindings()
    try:
        status, *values = getattr(driver, function)(*arguments)
    except (KeyError, ValueError) as unknown:  # a driver newer than the bindings has errors that they cannot name
        raise LaunchError("unknown", f"{function}: {unknown!r}", poisoned=True) from unknown
    if int(status):
        raise error(function, status)
    return values[0] if len(values) == 1 else tuple(values) or None


def dropped(function: str, handle: Any) -> None:
    """Give a handle back, where the driver still takes it. In a forked child it is the parent's."""
    if CUDA.lost:
        return
    with contextlib.suppress(LaunchError):
        call(function, handle)


@cache
def entry(function: str) -> Callable[..., int]:
    """A function of the driver's library by its name there, which may end in a version. It takes values of ctypes, and
    its status, if it is not 0, is for `refused`.

    The bindings convert every argument at every call, and make an enumeration of the status. Here a caller keeps the
    values between calls, so that a call takes as long as the driver does.
    """
    found: Callable[..., int] = getattr(ctypes.CDLL(LIBRARY), function)
    return found


def refused(function: str, status: int) -> LaunchError:
    """The error of a status that is not 0; by its number where the bindings are missing or older than the driver."""
    with contextlib.suppress(ImportError, KeyError, ValueError):
        return error(function, bindings().CUresult(status))
    return error(function, status)


def error(function: str, status: Any) -> LaunchError:
    """`CUDA_ERROR_ILLEGAL_ADDRESS` becomes the reason "illegal address"."""
    name = getattr(status, "name", f"CUDA_ERROR_{int(status)}").removeprefix("CUDA_ERROR_")
    said = ""
    with contextlib.suppress(Exception):
        said = bindings().cuGetErrorString(status)[1].decode()
    return LaunchError(name.lower().replace("_", " "), f"{function}: {said or name}", name not in HARMLESS)
