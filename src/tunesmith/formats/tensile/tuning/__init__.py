"""Tensile's tuning files: any era's file is translated into our form, with a record of what became of everything."""

from .record import Dialect, Fate, RejectedProblem, TensileImport, Treatment, WrittenGroup, WrittenStep
from .translation import TranslatedFile, read_translated
from .writing import text_of_import

__all__ = [
    "Dialect",
    "Fate",
    "RejectedProblem",
    "TensileImport",
    "TranslatedFile",
    "Treatment",
    "WrittenGroup",
    "WrittenStep",
    "read_translated",
    "text_of_import",
]
