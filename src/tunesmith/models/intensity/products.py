"""Turns a GEMM or convolution problem into the matrix product that it computes."""

from __future__ import annotations

import numpy as np

from tunesmith.problems.convolution import Convolution
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem

from .metrics import Product


def implicit_product(problem: Problem) -> Product:
    """The product of a GEMM, or the implicit product of a convolution, with the groups as its batch.

    The bytes of a convolution are those of the implicit matrices, in which an element of the input occurs once for
    every tap that reads it. These are more bytes than the arrays have (`Operation.bytes`). Raises ValueError for
    another operation, and for sizes that are impossible for a convolution.
    """
    match problem.type.operation:
        case "GEMM":
            gemm = Gemm.of(problem)
            return Product(gemm.m, gemm.n, gemm.k, gemm.batch, _bytes(gemm.dtype), _bytes(gemm.dest))
        case "Convolution":
            convolution = Convolution.of(problem)
            implicit = convolution.implicit_gemm
            operand_bytes, result_bytes = _bytes(convolution.dtype), _bytes(convolution.dest)
            return Product(implicit.m, implicit.n, implicit.k, implicit.groups, operand_bytes, result_bytes)
        case operation:
            raise ValueError(f"{problem.type.name}: {operation} is no product of matrices")


def _bytes(dtype: str) -> float:
    return float(np.dtype(dtype).itemsize)
