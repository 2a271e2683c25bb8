"""What a person sees: tables, JSON documents and drawings of results, and the progress of a run."""

from . import documents, tables
from .progress import CompilingReport, CountReport, ProgressReport

__all__ = ["CompilingReport", "CountReport", "ProgressReport", "documents", "tables"]
