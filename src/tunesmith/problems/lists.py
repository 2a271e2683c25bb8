"""Lists of problems as CSV: a header names the columns, and each further line is a problem.

Every list may have the columns `family`, a word to group rows by, and `weight`, how much a row counts beside the
others. Every mistake is a UserError with file and line.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.records import ProblemType, UserError

from .files import text_of
from .keys import shortened, unknown_key
from .sizes import LARGEST


@dataclass(frozen=True, slots=True)
class ListedProblem:
    """One row of a list, as a tuning file uses it.

    A row of another problem type has no sizes; `layout` describes that type in the words of the list. `leading` has the
    leading dimensions of D, C, A and B, each of which counts if it is larger than the natural one; empty means none.
    """

    sizes: tuple[int, ...]
    family: str = ""
    weight: float = 1.0
    layout: str = ""
    leading: tuple[int, ...] = ()


ListReader = Callable[[ProblemType, Path, str], Sequence[ListedProblem]]
"""Reads a file's problems for a type. The last argument is the location that names the file."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds. `read` converts the text of a cell, and gives None for a text that does not fit."""

    read: Callable[[str], int | float | bool | str | None]
    takes: str
    doc: str


def read_list(path: Path, columns: Mapping[str, Column], needed: Collection[str], what: str) -> list[dict[str, Any]]:
    """Every row in the file's order, as values by column name.

    The header may name `columns` in any order; only the `needed` columns must be present. `what` names the contents of
    the list in messages. Raises UserError for whatever is wrong in the file.
    """
    return [row for _, row in read_lines(path, columns, needed, what)]


def read_lines(
    path: Path, columns: Mapping[str, Column], needed: Collection[str], what: str
) -> list[tuple[str, dict[str, Any]]]:
    """As `read_list`, with the `file:line` of each row before it."""
    reader = csv.reader(io.StringIO(text_of(path, "CSV"), newline=""), strict=True)
    rows = []
    try:
        header = _header_of(reader)
        _check_header(header, columns, needed, f"{path}:1", what)
        for cells in filter(None, reader):
            location = f"{path}:{reader.line_num}"
            rows.append((location, dict(_values(header, columns, cells, location))))
    except csv.Error as error:
        location = f"{path}:{reader.line_num}"
        raise UserError(location, f"is no CSV ({error})", "quote cells that hold commas or quotes") from error
    if not rows:
        raise UserError(str(path), "lists no problem", "write a line for each below the header")
    return rows


def columns_of(path: Path) -> tuple[str, ...]:
    """The names in a list's header. Raises UserError for a file that cannot be read or is no CSV."""
    try:
        return _header_of(csv.reader(io.StringIO(text_of(path, "CSV"), newline=""), strict=True))
    except csv.Error as error:
        raise UserError(f"{path}:1", f"is no CSV ({error})", "write a header with names of columns") from error


def _header_of(rows: Iterator[list[str]]) -> tuple[str, ...]:
    return tuple(name.strip() for name in next(rows, []))


def size_column(doc: str) -> Column:
    return Column(_size, f"a whole number from 1 to {LARGEST}", doc)


def _check_header(
    header: tuple[str, ...], columns: Mapping[str, Column], needed: Collection[str], location: str, what: str
) -> None:
    for name in header:
        if name not in columns:
            raise unknown_key(location, name, columns, f"the header of a list of {what}")
        if header.count(name) > 1:
            raise UserError(location, f"the column {name} is there twice", "keep one of the two")
    for name in needed:
        if name not in header:
            raise UserError(
                location, f"there is no column {name}", f"name the columns {', '.join(needed)} in the header"
            )


def _values(
    header: tuple[str, ...], columns: Mapping[str, Column], cells: list[str], location: str
) -> Iterator[tuple[str, Any]]:
    if len(cells) != len(header):
        what = f"{len(cells)} cells under {len(header)} columns"
        raise UserError(location, what, f"give one for each of {', '.join(header)}")
    for name, cell in zip(header, cells, strict=True):
        text = cell.strip()
        value = columns[name].read(text)
        if value is None:
            raise UserError(location, f"{name} cannot be {shortened(text)}", f"give {columns[name].takes}")
        yield name, value


def _size(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= LARGEST else None


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 < weight < math.inf else None


GROUPING = {
    "family": Column(str, "a word", "a word that `Family` chooses by"),
    "weight": Column(_weight, "a positive number", "how much the problem counts in a step; 1 where there is none"),
}
"""The columns that every list may have."""
