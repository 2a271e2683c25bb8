"""Run time: load a library logic, choose a solution, launch it; or multiply without a logic."""

from ._default_library import matmul
from ._device import DeviceAbsentError
from .launch._launcher import LaunchRecord
from .library import Library, load

__all__ = ["DeviceAbsentError", "LaunchRecord", "Library", "load", "matmul"]
