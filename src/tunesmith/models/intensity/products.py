"""A problem as the product of matrices that it is."""

from __future__ import annotations

import numpy as np

from tunesmith.problems.convolution import Convolution
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem

from .metrics import Product


def implicit_product(problem: Problem) -> Product:
    """The product of a GEMM, or the implicit one of a convolution, with the groups as its batch.

    A convolution's bytes are then those of the matrices, in which an element of the input stands once for every tap
    that reads it: more than its arrays have (`Operation.bytes`). Raises ValueError for another operation, and for
    sizes that no convolution has.
    """
    match problem.type.operation:
        case "GEMM":
            gemm = Gemm.of(problem)
            return Product(gemm.m, gemm.n, gemm.k, gemm.batch, _bytes(gemm.dtype), _bytes(gemm.dest))
        case "Convolution":
            convolution = Convolution.of(problem)
            implicit = convolution.implicit_gemm
            element, written = _bytes(convolution.dtype), _bytes(convolution.dest)
            return Product(implicit.m, implicit.n, implicit.k, implicit.groups, element, written)
        case other:
            raise ValueError(f"{problem.type.name}: {other} is no product of matrices")


def _bytes(dtype: str) -> float:
    return float(np.dtype(dtype).itemsize)
