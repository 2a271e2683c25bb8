"""Run time: load a library logic, choose, launch."""

from ._device import DeviceAbsentError
from ._launcher import Launched
from ._library import Library, load

__all__ = ["DeviceAbsentError", "Launched", "Library", "load"]
