"""Run time: load a library logic, choose, launch."""

from ._launcher import Launched
from ._library import Library, load

__all__ = ["Launched", "Library", "load"]
