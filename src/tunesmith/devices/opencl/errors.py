"""OpenCL's errors as ours: the reason of each code, and whether the context survives."""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from tunesmith.toolchains.forked import OPENCL

from ..base import LaunchError

_REASONS: dict[int, str] = {
    getattr(cl.status_code, name): reason
    for reason, names in {
        "out of memory": ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE"),
        "out of resources": ("OUT_OF_RESOURCES",),
        "misaligned address": ("MISALIGNED_SUB_BUFFER_OFFSET",),
        "invalid value": ("INVALID_VALUE",),
        "no such entry": ("INVALID_KERNEL_NAME",),
        "invalid argument": ("INVALID_ARG_INDEX", "INVALID_ARG_VALUE", "INVALID_ARG_SIZE", "INVALID_KERNEL_ARGS"),
        "invalid work-group size": ("INVALID_WORK_DIMENSION", "INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE"),
        "invalid grid": ("INVALID_GLOBAL_WORK_SIZE",),
        "context lost": ("INVALID_COMMAND_QUEUE", "INVALID_CONTEXT"),
        "failed underway": ("EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",),
    }.items()
    for name in names
}
"""The reason of a LaunchError by OpenCL's error code."""

_FATAL = ("context lost", "failed underway")
"""Reasons after which the context cannot be used any more."""


class DriverErrors:
    """A context manager that turns the driver's errors into LaunchError. Raises UserError after a fork."""

    def __init__(self, poisoned: bool) -> None:
        self._poisoned = poisoned

    def __enter__(self) -> None:
        if OPENCL.lost:
            raise OPENCL.error()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, cl.Error):
            reason = _REASONS.get(error.code, "launch refused")
            raise LaunchError(reason, str(error), self._poisoned or reason in _FATAL) from error


LAUNCHING, WAITING = DriverErrors(poisoned=False), DriverErrors(poisoned=True)
"""A call that waits raises if a command failed while it ran. Then the context cannot be used any more."""
