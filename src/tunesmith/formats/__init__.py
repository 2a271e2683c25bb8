"""Other tools' files, in and out."""

from ._reading import DoubtError, Reading
from .random_files import read_random

__all__ = ["DoubtError", "Reading", "read_random"]
