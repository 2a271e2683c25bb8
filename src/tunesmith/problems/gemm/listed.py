"""Lists of GEMMs as CSV, in the words of those who call them: row-major matrices, as PyTorch and NumPy have them.

A header names the columns: m, n and k, and as many of batch, trans_a, trans_b, family and weight as there is need for,
in any order. Each further line is a problem. Every mistake is a UserError with file and line.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.problems._files import text_of
from tunesmith.problems._keys import shown, unknown_key
from tunesmith.problems.sizes import LARGEST
from tunesmith.records import ProblemType, UserError


@dataclass(frozen=True, slots=True)
class ListedGemm:
    """C[m, n] = op(A) op(B) of row-major matrices, those of a batch one after the other.

    A is stored m x k, or k x m with `trans_a`; B is stored k x n, or n x k with `trans_b` (the weights of a linear
    layer). `family` is a word to group by, `weight` how much the problem counts beside the others.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    trans_a: bool = False
    trans_b: bool = False
    family: str = ""
    weight: float = 1.0

    def fits(self, problem_type: ProblemType) -> bool:
        """Whether this GEMM type computes it without a copy, natural leading dimensions being given.

        Types are column-major. Row-major C is column-major C' in the same memory, and C' = op(B)' op(A)': B comes
        first, m and n change places, and what is stored transposed as rows is not as columns.
        """
        fields = problem_type.fields
        needed = {"TransposeA": self.trans_b, "TransposeB": self.trans_a, "Batched": self.batch > 1}
        return all(fields.flag(name) == value for name, value in needed.items())

    def sizes(self, problem_type: ProblemType) -> tuple[int, ...]:
        """One size for each of the type's indices: M is n, and N is m."""
        extents = {"M": self.n, "N": self.m, "Batch": self.batch, "K": self.k}
        return tuple(extents[index] for index in problem_type.indices)

    @property
    def layout(self) -> str:
        """`N T`, as the columns trans_a and trans_b have it, with the word `batched` where it is."""
        letters = " ".join("T" if transposed else "N" for transposed in (self.trans_a, self.trans_b))
        return f"{letters} batched" if self.batch > 1 else letters


def read_gemm_list(path: Path) -> tuple[ListedGemm, ...]:
    """Every row of a list, in its order; UserError for a file that cannot be read and for whatever is wrong in it."""
    reader = csv.reader(io.StringIO(text_of(path, "CSV"), newline=""), strict=True)
    try:
        header = tuple(name.strip() for name in next(reader, []))
        _check_header(header, f"{path}:1")
        rows = tuple(_row(header, cells, f"{path}:{reader.line_num}") for cells in reader if cells)
    except csv.Error as error:
        place = f"{path}:{reader.line_num}"
        raise UserError(place, f"is no CSV ({error})", "quote cells that hold commas or quotes") from error
    if not rows:
        raise UserError(str(path), "lists no problem", "write a line for each below the header")
    return rows


def _check_header(header: tuple[str, ...], place: str) -> None:
    for name in header:
        if name not in COLUMNS:
            raise unknown_key(place, name, COLUMNS, "the header of a list of GEMMs")
        if header.count(name) > 1:
            raise UserError(place, f"the column {name} is there twice", "keep one of the two")
    for name in NEEDED:
        if name not in header:
            raise UserError(place, f"there is no column {name}", f"name the columns {', '.join(NEEDED)} in the header")


def _row(header: tuple[str, ...], cells: list[str], place: str) -> ListedGemm:
    if len(cells) != len(header):
        what = f"{len(cells)} cells under {len(header)} columns"
        raise UserError(place, what, f"give one for each of {', '.join(header)}")
    return ListedGemm(**dict(_values(header, cells, place)))


def _values(header: tuple[str, ...], cells: list[str], place: str) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(header, cells, strict=True):
        column, text = COLUMNS[name], cell.strip()
        value = column.read(text)
        if value is None:
            raise UserError(place, f"{name} cannot be {shown(text)}", f"give {column.takes}")
        yield name, value


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds; `read` gives None for a cell that is no such thing."""

    read: Callable[[str], int | float | bool | str | None]
    takes: str
    doc: str


def _size(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= LARGEST else None


def _transposed(text: str) -> bool | None:
    return {"N": False, "T": True}.get(text)


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 < weight < math.inf else None


_SIZE = f"a whole number from 1 to {LARGEST}"

NEEDED = ("m", "n", "k")
COLUMNS = {
    "m": Column(_size, _SIZE, "rows of op(A) and of C"),
    "n": Column(_size, _SIZE, "columns of op(B) and of C"),
    "k": Column(_size, _SIZE, "columns of op(A), rows of op(B)"),
    "batch": Column(_size, _SIZE, "matrices of a batch; 1 where there is no such column"),
    "trans_a": Column(_transposed, "N or T", "T: A is stored k x m, not m x k; N where there is no such column"),
    "trans_b": Column(_transposed, "N or T", "T: B is stored n x k, not k x n; N where there is no such column"),
    "family": Column(str, "a word", "a word that `Family` chooses by"),
    "weight": Column(_weight, "a positive number", "how much the problem counts in a step; 1 where there is none"),
}
