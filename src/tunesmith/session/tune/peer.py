"""A GEMM logic against NumPy's BLAS, on the sizes that it was tuned for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.devices import environment
from tunesmith.library import Launched, Library, load
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, UserError

from .arrays import row_major
from .compare import Ratio, compare
from .tuning import CACHE

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
    # Threads are pinned as the bench pins them, and what it compiled is found again.
    os.environ.update(environment(folder / CACHE if folder.is_dir() else folder.parent / CACHE))
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
    one = row_major(problem, random)
    count = math.ceil(2 * library.target.last_level_cache_bytes / sum(x.nbytes for x in one.storage.values()))
    sets = [one, *(row_major(problem, random) for _ in range(min(max(count, 2), MOST_SETS) - 1))]
    ours = [partial(library.matmul, each.a, each.b, out=each.out) for each in sets]
    peer = [partial(np.matmul, each.a, each.b, out=each.out) for each in sets]
    ratio = compare(ours, peer)
    flops = OPERATIONS["GEMM"].flops(problem)
    return Comparison(problem, flops, launched[-1].choice.name, launched[-1].choice.rule.value, ratio)
