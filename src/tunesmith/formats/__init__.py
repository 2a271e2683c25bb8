"""Reading and writing files of other tools."""

from .random.files import read_random
from .random.reading import DoubtError, Reading

__all__ = ["DoubtError", "Reading", "read_random"]
