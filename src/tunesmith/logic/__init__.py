"""Which solution for which size. `tunesmith.logic.build` makes a logic; programs that only use one do not load it.
Neither do they load tables, which a logic is made from, nor what reads the logic in the package, before its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .document import Document, NamedSolution, Origin, Regret, SizeRow
from .files import logic_files, write_atomically
from .read import location_in
from .select import Choice, Logic, Rule
from .units import Unit
from .write import dump, write_logic

if TYPE_CHECKING:
    from .shipped import (
        ShippedHead,
        ShippedLogic,
        is_shipped,
        only_logic,
        read_head,
        read_shipped,
        read_shipped_model,
        shipped_file,
        shipped_files,
        shipped_for,
        shipped_names,
        shipped_under,
    )
    from .table import NOT_MEASURED, FinalTable, Sheet, TableCell, details_of, read_csv, sizes_of, write_csv

_OF_TABLES = "NOT_MEASURED", "FinalTable", "Sheet", "TableCell", "details_of", "read_csv", "sizes_of", "write_csv"
_OF_SHIPPED = (
    "ShippedHead",
    "ShippedLogic",
    "is_shipped",
    "only_logic",
    "read_head",
    "read_shipped",
    "read_shipped_model",
    "shipped_file",
    "shipped_files",
    "shipped_for",
    "shipped_names",
    "shipped_under",
)
_MODULE_OF_NAME = {**dict.fromkeys(_OF_TABLES, "table"), **dict.fromkeys(_OF_SHIPPED, "shipped")}

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
    "only_logic",
    "read_csv",
    "read_head",
    "read_shipped",
    "read_shipped_model",
    "shipped_file",
    "shipped_files",
    "shipped_for",
    "shipped_names",
    "shipped_under",
    "sizes_of",
    "write_atomically",
    "write_csv",
    "write_logic",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)
