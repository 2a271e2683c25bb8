"""The CUDA driver by `cuda.bindings.driver`. Every call is checked, and its error becomes a LaunchError.

We use the driver's own API and not `cuda.core`: its names have not changed since CUDA 12, it has tensor maps, memsets
and waits for memory, and a launch costs one call. Every launch calls the driver by ctypes: see `driver_function`.
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
"""The driver's library. The bindings load it by this name too."""

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
"""Errors after which the context still works. Every other error (illegal address, launch failed, timeout, ECC) stays in
the context, and so in the process."""


@cache
def bindings() -> Any:
    """`cuda.bindings.driver`. Raises ImportError if it is not installed. Loads no driver."""
    return importlib.import_module("cuda.bindings.driver")


def call(function: str, *arguments: Any) -> Any:
    """Call a function of the driver; returns what it returns beside its status: None, a value, or a tuple. Raises
    LaunchError, and UserError in a forked child whose parent has used the driver."""
    CUDA.use()
    driver = bindings()
    try:
        status, *values = getattr(driver, function)(*arguments)
    except (KeyError, ValueError) as unknown:  # the bindings cannot name an error of a newer driver
        raise LaunchError("unknown", f"{function}: {unknown!r}", poisoned=True) from unknown
    if int(status):
        raise error_of_result(function, status)
    return values[0] if len(values) == 1 else tuple(values) or None


def destroy_handle(function: str, handle: Any) -> None:
    """Destroy a handle, unless the driver refuses. In a forked child nothing happens: the parent owns the handle."""
    if CUDA.lost:
        return
    with contextlib.suppress(LaunchError):
        call(function, handle)


@cache
def driver_function(function: str) -> Callable[..., int]:
    """A function of the driver's library by its name there, which may end in a version. The function takes ctypes
    values and returns a status; `error_of_status` makes a status that is not 0 an error.

    The bindings convert every argument at every call, and make an enumeration of the status. With ctypes a caller keeps
    the values between calls, so that a call takes no longer than the driver does.
    """
    loaded: Callable[..., int] = getattr(ctypes.CDLL(LIBRARY), function)
    return loaded


def error_of_status(function: str, status: int) -> LaunchError:
    """The error for a status that is not 0. It has a number and no name if the bindings are missing or too old."""
    with contextlib.suppress(ImportError, KeyError, ValueError):
        return error_of_result(function, bindings().CUresult(status))
    return error_of_result(function, status)


def error_of_result(function: str, status: Any) -> LaunchError:
    """`CUDA_ERROR_ILLEGAL_ADDRESS` becomes the reason "illegal address"."""
    name = getattr(status, "name", f"CUDA_ERROR_{int(status)}").removeprefix("CUDA_ERROR_")
    description = ""
    with contextlib.suppress(Exception):
        description = bindings().cuGetErrorString(status)[1].decode()
    return LaunchError(name.lower().replace("_", " "), f"{function}: {description or name}", name not in HARMLESS)
