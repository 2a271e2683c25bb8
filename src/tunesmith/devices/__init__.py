"""Devices, which carry out plans: finding them, choosing one, opening it."""

from .absent import absent_target
from .api import Api, FoundDevice
from .base import NOT_SUPPORTED, Buffer, Bytes, Device, LaunchError, Prepared, Program
from .choice import (
    APIS,
    COMPILING,
    asks_for_hidden,
    begin_to_choose,
    choose,
    discover,
    environment,
    is_full_selector,
    open_device,
    target_here,
)

__all__ = [
    "APIS",
    "COMPILING",
    "NOT_SUPPORTED",
    "Api",
    "Buffer",
    "Bytes",
    "Device",
    "FoundDevice",
    "LaunchError",
    "Prepared",
    "Program",
    "absent_target",
    "asks_for_hidden",
    "begin_to_choose",
    "choose",
    "discover",
    "environment",
    "is_full_selector",
    "open_device",
    "target_here",
]
