"""What a person sees: tables and JSON documents of what is known, and progress while it is being found out."""

from . import documents, tables
from .progress import CompilingReport, ProgressReport

__all__ = ["CompilingReport", "ProgressReport", "documents", "tables"]
