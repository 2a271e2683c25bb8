"""A GEMM problem as NumPy arrays, for those who go through the library's front door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem

Array = NDArray[Any]


@dataclass(frozen=True)
class RowMajor:
    """Arrays for which `matmul(a, b, c=c, out=out)` is the problem: row-major, the product's transpose, so that `b` is
    the problem's A. They have the problem's leading dimensions; a transposed operand is a transposed view.

    `storage` is what they are views of, as 1-D arrays by the names of the problem's operands.
    """

    a: Array
    b: Array
    c: Array
    out: Array
    storage: dict[str, Array]


def row_major(problem: Problem, random: np.random.Generator) -> RowMajor:
    """Random inputs as verification uses them, and an output full of NaN, or of zeros where it has none."""
    operation = OPERATIONS["GEMM"]
    operands = {operand.name: operand for operand in operation.operands(problem)}
    storage: dict[str, Array] = dict(operation.inputs(problem, random))
    d = operands["D"]
    storage["D"] = np.full(d.storage_elements, np.nan if np.dtype(d.dtype).kind != "i" else 0, d.dtype)

    def view(name: str) -> Array:
        operand, array = operands[name], storage[name]
        return as_strided(array, operand.shape, [stride * array.itemsize for stride in operand.strides]).T

    return RowMajor(view("B"), view("A"), view("C"), view("D"), storage)
