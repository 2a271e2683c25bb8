"""Run time: load a library logic, choose, launch."""

from ._device import DeviceAbsentError
from .launch._launcher import Launched
from .library import Library, load

__all__ = ["DeviceAbsentError", "Launched", "Library", "load"]
