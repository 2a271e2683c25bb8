"""Which solution for which size. `tunesmith.logic.build` makes a logic; programs that only use one do not load it."""

from .document import Document, NamedSolution, Origin, Regret, SizeRow
from .files import logic_files, write_atomically
from .read import location_in
from .select import Choice, Logic, Rule
from .shipped import ShippedHead, ShippedLogic, is_shipped, read_shipped, shipped_files, shipped_for
from .table import NOT_MEASURED, FinalTable, Sheet, TableCell, details_of, read_csv, sizes_of, write_csv
from .units import Unit
from .write import dump, write_logic

__all__ = [
    "NOT_MEASURED",
    "Choice",
    "Document",
    "FinalTable",
    "Logic",
    "NamedSolution",
    "Origin",
    "Regret",
    "Rule",
    "Sheet",
    "ShippedHead",
    "ShippedLogic",
    "SizeRow",
    "TableCell",
    "Unit",
    "details_of",
    "dump",
    "is_shipped",
    "location_in",
    "logic_files",
    "read_csv",
    "read_shipped",
    "shipped_files",
    "shipped_for",
    "sizes_of",
    "write_atomically",
    "write_csv",
    "write_logic",
]
