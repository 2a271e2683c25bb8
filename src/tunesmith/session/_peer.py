"""A GEMM logic against NumPy's BLAS, on the sizes that it was tuned for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.library import Library, load
from tunesmith.logic import Choice, Row
from tunesmith.records import UserError

from .compare import Ratio, compare


@dataclass(frozen=True, slots=True)
class Comparison:
    """One size: what the library chose, and NumPy's time over ours (host time, both through their public calls)."""

    sizes: tuple[int, ...]
    flops: float
    choice: Choice
    ratio: Ratio


def compare_with_numpy(folder: Path) -> Iterator[Comparison]:
    """Compare on every size of every GEMM logic in a folder; UserError when there is none.

    Both sides get the same arrays, several sets of them so that together they exceed the last-level cache.
    """
    library = load(folder)
    logics = [logic for logic in library.logics if logic.document.problem_type.operation == "GEMM"]
    if not logics:
        raise UserError(str(folder), "no GEMM logic in it", "give a folder that a GEMM was tuned into")
    for logic in logics:
        fields = logic.document.problem_type.fields
        for row in logic.document.rows:
            yield _one(library, row, fields.word("DataType"), fields.flag("TransposeA"), fields.flag("TransposeB"))
