"""Where plans are carried out: finding devices, choosing one, opening it."""

from ._absent import absent_target
from ._api import Api, Found
from ._base import NOT_SUPPORTED, Buffer, Bytes, Device, LaunchError, Prepared, Program
from ._choice import APIS, asks_for_hidden, choose, discover, environment, open_device

__all__ = [
    "APIS",
    "NOT_SUPPORTED",
    "Api",
    "Buffer",
    "Bytes",
    "Device",
    "Found",
    "LaunchError",
    "Prepared",
    "Program",
    "absent_target",
    "asks_for_hidden",
    "choose",
    "discover",
    "environment",
    "open_device",
]
