"""Lists of GEMMs as callers of PyTorch and NumPy describe them: with row-major matrices.

The header names the columns in any order: m, n and k, and any of batch, trans_a, trans_b, family and weight.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problems.lists import GROUPING, Column, read_list, size_column
from tunesmith.records import ProblemType


@dataclass(frozen=True, slots=True)
class ListedGemm:
    """C[m, n] = op(A) op(B) of row-major matrices, those of a batch one after the other.

    A is stored m x k, or k x m with `trans_a`. B is stored k x n, or n x k with `trans_b` (the weights of a linear
    layer). `family` is a word to group by, `weight` says how much the problem counts beside the others.
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
        """Whether this GEMM type computes the product without a copy, with natural leading dimensions.

        Types are column-major. Row-major C is column-major C' in the same memory, and C' = op(B)' op(A)': B comes
        first, m and n change places, and a matrix that is transposed in row-major terms is not in column-major terms.
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
        """The columns trans_a and trans_b, such as `N T`, followed by `batched` for a batch."""
        letters = " ".join("T" if transposed else "N" for transposed in (self.trans_a, self.trans_b))
        return f"{letters} batched" if self.batch > 1 else letters


def read_gemm_list(path: Path) -> tuple[ListedGemm, ...]:
    """Every row of a list, in its order. Raises UserError for a file that cannot be read or has a mistake."""
    return tuple(ListedGemm(**row) for row in read_list(path, COLUMNS, NEEDED, "GEMMs"))


def gemm_list_text(rows: Iterable[ListedGemm]) -> str:
    """The rows as a list's text, from which `read_gemm_list` reads the same rows. Weights are left out."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(map(gemm_cells, rows))
    return text.getvalue()


def gemm_cells(row: ListedGemm) -> tuple[object, ...]:
    """The cells of a row under HEADER."""
    letters = ("T" if transposed else "N" for transposed in (row.trans_a, row.trans_b))
    return row.family, row.m, row.n, row.k, row.batch, *letters


def _transposed(text: str) -> bool | None:
    return {"N": False, "T": True}.get(text)


HEADER = "family", "m", "n", "k", "batch", "trans_a", "trans_b"
NEEDED = ("m", "n", "k")
COLUMNS = {
    "m": size_column("rows of op(A) and of C"),
    "n": size_column("columns of op(B) and of C"),
    "k": size_column("columns of op(A), rows of op(B)"),
    "batch": size_column("matrices of a batch; 1 where there is no such column"),
    "trans_a": Column(_transposed, "N or T", "T: A is stored k x m, not m x k; N where there is no such column"),
    "trans_b": Column(_transposed, "N or T", "T: B is stored n x k, not k x n; N where there is no such column"),
    **GROUPING,
}
