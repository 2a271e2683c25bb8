"""Problems made ready for verification: random inputs and the reference's answer, kept by size."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from tunesmith.problems import OPERATIONS, Array
from tunesmith.records import Problem

from .case import VerificationCase

_THREADS = 2
"""That make cases ahead: as many as most problems have checks, each of which is a case."""
_KEPT_SHARE = 0.25
"""Of the host's memory: making a big problem's case again for every candidate would take longer than all else."""


class Cases:
    """Cases by problem, the least recently used forgotten first. The same seed and problem give the same numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kept: OrderedDict[str, VerificationCase] = OrderedDict()
        self._coming: dict[str, Future[VerificationCase]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "tunesmith-cases")

    def get(self, problem: Problem) -> VerificationCase:
        key = problem.to_json()
        if key not in self._kept:
            coming = self._coming.pop(key, None)
            case = coming.result() if coming else self._made(problem)
            self._make_room(case.size)
            self._kept[key] = case
        self._kept.move_to_end(key)
        return self._kept[key]

    def ahead(self, problems: Sequence[Problem]) -> None:
        """Begin to make these, in threads of their own; nobody waits.

        What was begun and never asked for is forgotten when others are begun.
        """
        missing = {key: problem for problem in problems if (key := problem.to_json()) not in self._kept}
        if missing.keys() <= self._coming.keys():
            return
        for coming in self._coming.values():
            coming.cancel()
        self._coming = {key: self._threads.submit(self._made, problem) for key, problem in missing.items()}

    def kept(self, problem: Problem) -> VerificationCase | None:
        """The case if it is at hand."""
        return self._kept.get(problem.to_json())

    def inputs(self, problem: Problem) -> Mapping[str, Array]:
        """The numbers alone, where no reference is asked for."""
        key = problem.to_json()
        if key in self._kept:
            return self._kept[key].inputs
        number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little")
        return OPERATIONS[problem.type.operation].inputs(problem, np.random.default_rng([self._seed, number]))

    def _made(self, problem: Problem) -> VerificationCase:
        operation, inputs = OPERATIONS[problem.type.operation], self.inputs(problem)
        return VerificationCase(operation.operands(problem), inputs, operation.reference(problem, inputs))

    def _make_room(self, size: int) -> None:
        limit = _KEPT_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        # The last one stays whatever its size: every candidate of a problem is verified on two in turn.
        while len(self._kept) > 1 and sum(case.size for case in self._kept.values()) + size > limit:
            self._kept.popitem(last=False)
