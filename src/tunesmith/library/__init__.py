"""Run time: load a library logic, choose a solution, launch it; or multiply without a logic."""

from ._device import DeviceAbsentError
from ._untuned import matmul
from .launch._launcher import LaunchRecord
from .library import Library, load

__all__ = ["DeviceAbsentError", "LaunchRecord", "Library", "load", "matmul"]
