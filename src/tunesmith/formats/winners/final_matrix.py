"""A GEMM's final table as a matrix of times: a row for each product, a column for each solution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tunesmith.logic import read_csv
from tunesmith.problems.gemm import DATA_TYPES
from tunesmith.records import UserError

from .tuned_shape import DATA_TYPE_LETTERS

_REMEDY = "give the *_Final.csv of a GEMM that `tunesmith tune` wrote"
_NAMES = {"b8": "f8"} | {letter: name for name, letter in DATA_TYPE_LETTERS.items() if name != "i8x4"}
"""The name of a data type by its letter."""
_TYPE = re.compile(rf"C[a-z]+_A[a-z]+_B[a-z]+_({'|'.join(sorted(map(str.upper, DATA_TYPES), key=len, reverse=True))})")


@dataclass(frozen=True)
class FinalMatrix:
    """M, N, K and batch of each product, the solutions' names, and seconds (products by solutions; NaN: did not run).

    `data_type` is the type of A and B, `result_type` the type of D.
    """

    sizes: tuple[tuple[int, int, int, int], ...]
    solutions: tuple[str, ...]
    seconds: NDArray[np.float64]
    data_type: str
    result_type: str


def is_final(path: Path) -> bool:
    """Whether the file's name is that of a final table."""
    return path.name.endswith("_Final.csv")


def read_final(path: Path) -> FinalMatrix:
    """The matrix of a final table. Raises UserError, with the line, if the file is no final table of a GEMM."""
    sheet = read_csv(path)
    if not sheet.names:
        raise UserError(f"{path}:1", "the table has no solution", _REMEDY)
    types = {_data_types(name) for name in sheet.names}
    data_types = types.pop()
    if types or not data_types:
        raise UserError(f"{path}:1", f"no solution of one GEMM type: {sheet.names[0][:60]}", _REMEDY)
    sizes = []
    for number, row in enumerate(sheet.sizes):
        m, n, k, batch = (row.get(name, missing) for name, missing in (("M", 0), ("N", 0), ("K", 0), ("Batch", 1)))
        if not all(1 <= size <= 10**12 for size in (m, n, k, batch)):
            raise UserError(
                f"{path}:{number + 2}", f"no product: M, N, K and Batch are {m}, {n}, {k}, {batch}", _REMEDY
            )
        sizes.append((m, n, k, batch))
    seconds = np.full((len(sizes), len(sheet.names)), np.nan)
    columns = {name: column for column, name in enumerate(sheet.names)}
    for row_number, name, time in sheet.times():
        seconds[row_number, columns[name]] = time
    kept = np.flatnonzero(np.isfinite(seconds).any(axis=1))
    return FinalMatrix(tuple(sizes[row] for row in kept), sheet.names, seconds[kept], *data_types)


def _data_types(solution: str) -> tuple[str, str] | None:
    """The types of A and B, and of D, from a solution's name, which begins with its problem type's name.

    If D's type differs from the operands', its letter follows theirs. None for a problem type that is no GEMM.
    """
    found = _TYPE.match(solution)
    if not found:
        return None
    letter, rest = found[1].lower(), solution[found.end() :]
    dest = rest[:1].lower()
    result = dest if dest in DATA_TYPES[letter].dest else letter
    return ("tf32", "f32") if re.match("B?_MX(_|$)", rest) else (_NAMES[letter], _NAMES[result])
