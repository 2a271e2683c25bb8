"""Other tools' files, in and out."""

from ._reading import Reading
from .random_files import read_random

__all__ = ["Reading", "read_random"]
