"""What a person sees: tables and JSON documents of what is known, and progress while it is being found out."""

from . import documents, tables
from .progress import ProgressReport

__all__ = ["ProgressReport", "documents", "tables"]
