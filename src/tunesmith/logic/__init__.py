"""Which solution for which size. `tunesmith.logic.build` makes a logic; a running program never needs it."""

from ._document import Document, Named, Origin, Regret, SizeRow
from ._files import logic_files, write_atomically
from ._read import place_in
from ._table import NOT_MEASURED, FinalTable, Sheet, TableCell, details_of, read_csv, sizes_of, write_csv
from ._units import Unit
from ._write import dump, write_logic
from .select import Choice, Logic, Rule

__all__ = [
    "NOT_MEASURED",
    "Choice",
    "Document",
    "FinalTable",
    "Logic",
    "Named",
    "Origin",
    "Regret",
    "Rule",
    "Sheet",
    "SizeRow",
    "TableCell",
    "Unit",
    "details_of",
    "dump",
    "logic_files",
    "place_in",
    "read_csv",
    "sizes_of",
    "write_atomically",
    "write_csv",
    "write_logic",
]
