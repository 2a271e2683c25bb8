"""A logic against another library on the host (a GEMM's: NumPy's BLAS), on the sizes that it was tuned for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tunesmith.devices import environment
from tunesmith.library import Launched, Library, load
from tunesmith.library.doors import door_of, storage_for
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, UserError
from tunesmith.session.frame.outputs import CACHE

from .compare import Ratio, compare

MOST_SETS = 64
"""Sets of arrays at most: enough to leave a cache even where the arrays are small, without filling memory."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One size: what the library launched, and the peer's time over ours (host time, both through public calls)."""

    problem: Problem
    flops: float
    solution: str
    rule: str
    ratio: Ratio


def compare_with_numpy(folder: Path) -> Iterator[Comparison]:
    """Compare on every size of every logic in a folder that NumPy can compute too; UserError when there is none.

    Both sides get the same arrays, in several sets that are used in turn, so that the last-level cache is as cold for
    the one as for the other.
    """
    # Threads are pinned as the bench pins them, and what it compiled is found again.
    os.environ.update(environment(folder / CACHE if folder.is_dir() else folder.parent / CACHE))
    launched: list[Launched] = []
    compared = False
    with load(folder, launched=launched.append) as library:
        for kind in library.problem_types:
            scalars = OPERATIONS[kind.operation].scalars_of(kind.fields, str)
            for sizes in library.measured_sizes(kind):
                for comparison in _compared(library, Problem(kind, sizes, (), scalars), launched):
                    compared = True
                    yield comparison
    if not compared:
        raise UserError(str(folder), "no logic in it that NumPy computes", "give a folder that a GEMM was tuned into")


def _compared(library: Library, problem: Problem, launched: list[Launched]) -> Iterator[Comparison]:
    """Nothing where there is no peer."""
    door, random = door_of(problem.type), np.random.default_rng(0)
    first = storage_for(problem, random)
    if door.peer(problem, first) is None:
        return
    count = math.ceil(2 * library.target.last_level_cache_bytes / sum(array.nbytes for array in first.values()))
    sets = [first, *(storage_for(problem, random) for _ in range(min(max(count, 2), MOST_SETS) - 1))]
    peers = [call for storage in sets if (call := door.peer(problem, storage))]
    ratio = compare([door.call(library, problem, storage) for storage in sets], peers)
    flops = OPERATIONS[problem.type.operation].flops(problem)
    yield Comparison(problem, flops, launched[-1].choice.name, launched[-1].choice.rule.value, ratio)
