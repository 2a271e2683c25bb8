"""Problems prepared for verification: random inputs and the reference's outputs, kept by size."""

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
"""Threads that make cases ahead: as many as most problems have checks, each of which is a case."""
_KEPT_SHARE = 0.25
"""Largest share of the host's memory for cases. A big problem's case takes too long to make it for every candidate."""


def inputs_of(problem: Problem, seed: int) -> Mapping[str, Array]:
    """The contents of a problem's inputs. The same seed and problem give the same numbers in every process."""
    number = int.from_bytes(hashlib.sha256(problem.to_json().encode()).digest()[:8], "little")
    return OPERATIONS[problem.type.operation].inputs(problem, np.random.default_rng([seed, number]))


class Cases:
    """Cases by problem; the least recently used is dropped first. The same seed and problem give the same numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kept: OrderedDict[str, VerificationCase] = OrderedDict()
        self._pending: dict[str, Future[VerificationCase]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "tunesmith-cases")

    def get(self, problem: Problem) -> VerificationCase:
        key = problem.to_json()
        if key not in self._kept:
            pending = self._pending.pop(key, None)
            case = pending.result() if pending else self._make(problem)
            self._make_room(case.size)
            self._kept[key] = case
        self._kept.move_to_end(key)
        return self._kept[key]

    def ahead(self, problems: Sequence[Problem]) -> None:
        """Begin to make the cases of these problems in other threads; returns at once.

        Cases that were begun by an earlier call and not fetched since are dropped.
        """
        missing = {key: problem for problem in problems if (key := problem.to_json()) not in self._kept}
        if missing.keys() <= self._pending.keys():
            return
        for pending in self._pending.values():
            pending.cancel()
        self._pending = {key: self._threads.submit(self._make, problem) for key, problem in missing.items()}

    def kept(self, problem: Problem) -> VerificationCase | None:
        """The case if it is kept."""
        return self._kept.get(problem.to_json())

    def inputs(self, problem: Problem) -> Mapping[str, Array]:
        """The contents of a problem's inputs, without computing the reference."""
        key = problem.to_json()
        if key in self._kept:
            return self._kept[key].inputs
        return inputs_of(problem, self._seed)

    def _make(self, problem: Problem) -> VerificationCase:
        operation, inputs = OPERATIONS[problem.type.operation], self.inputs(problem)
        expected, agreement = operation.reference(problem, inputs), operation.agreement(problem)
        return VerificationCase(operation.operands(problem), inputs, expected, agreement)

    def _make_room(self, size: int) -> None:
        limit = _KEPT_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        # The last case stays whatever its size, since every candidate of a problem is verified on two cases in turn.
        while len(self._kept) > 1 and sum(case.size for case in self._kept.values()) + size > limit:
            self._kept.popitem(last=False)
