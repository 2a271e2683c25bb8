"""A GEMM logic against NumPy's BLAS, on the sizes that it was tuned for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.library import Launched, Library, load
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, ProblemType, UserError

from .compare import Ratio, compare

MOST_SETS = 64
"""Sets of arrays at most: enough to leave a cache even where the arrays are small, without filling memory."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One size: what the library launched, and NumPy's time over ours (host time, both through their public calls)."""

    problem: Problem
    flops: float
    solution: str
    rule: str
    ratio: Ratio


def compare_with_numpy(folder: Path) -> Iterator[Comparison]:
    """Compare on every size of every GEMM logic in a folder; UserError when there is none.

    Both sides get the same row-major arrays, in several sets that are used in turn, so that the last-level cache is as
    cold for the one as for the other.
    """
    launched: list[Launched] = []
    with load(folder, launched=launched.append) as library:
        types = [kind for kind in library.problem_types if kind.operation == "GEMM"]
        if not types:
            raise UserError(str(folder), "no GEMM logic in it", "give a folder that a GEMM was tuned into")
        for kind in types:
            for sizes in library.measured_sizes(kind):
                yield _compare(library, Problem(kind, sizes), launched)


def _compare(library: Library, problem: Problem, launched: list[Launched]) -> Comparison:
    random = np.random.default_rng(0)
    one = _arrays(problem, random)
    count = math.ceil(2 * library.target.last_level_cache_bytes / sum(array.nbytes for array in one))
    sets = [one, *(_arrays(problem, random) for _ in range(min(max(count, 2), MOST_SETS) - 1))]
    ours = [partial(library.matmul, a, b, out=out) for a, b, out in sets]
    peer = [partial(np.matmul, a, b, out=out) for a, b, out in sets]
    ratio = compare(ours, peer)
    flops = OPERATIONS["GEMM"].flops(problem)
    return Comparison(problem, flops, launched[-1].choice.name, launched[-1].choice.rule.value, ratio)


def _arrays(problem: Problem, random: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Row-major a, b and out for which `matmul` is this column-major problem: the transposed product, so that b is the
    problem's A. A transposed operand is a transposed view."""
    kind: ProblemType = problem.type
    m, n, k = (problem.size(index) for index in ("M", "N", "K"))
    batch = (problem.size("Batch"),) if "Batch" in kind.indices else ()
    dtype = {"s": np.float32, "d": np.float64}[kind.fields.word("DataType")]

    def matrix(rows: int, columns: int, transposed: bool) -> NDArray[Any]:
        shape = (*batch, columns, rows) if transposed else (*batch, rows, columns)
        values = random.uniform(-1, 1, shape).astype(dtype)
        return np.swapaxes(values, -1, -2) if transposed else values

    a = matrix(n, k, kind.fields.flag("TransposeB"))
    b = matrix(k, m, kind.fields.flag("TransposeA"))
    return a, b, np.empty((*batch, n, m), dtype)
