"""What a person sees: tables of what is known, and progress while it is being found out."""

from . import tables
from .progress import ProgressReport

__all__ = ["ProgressReport", "tables"]
