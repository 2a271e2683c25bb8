"""Problems prepared for verification: random inputs and the reference's outputs, kept by size."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from tunesmith.problems import OPERATIONS, Array, storage_bytes
from tunesmith.records import Problem

from .case import VerificationCase

_FEWEST_THREADS, _MOST_THREADS, _PROCESSORS_EACH = 2, 8, 4
"""Threads that make cases ahead: at least as many as most problems have checks, each of which is a case; more on a host
with many processors, which the workers of several devices share."""
_IN_USE = 2
"""Cases on which the candidates of the problem at hand are verified."""
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
        processors = os.cpu_count() or 1
        threads = min(max(processors // _PROCESSORS_EACH, _FEWEST_THREADS), _MOST_THREADS)
        self._threads = ThreadPoolExecutor(threads, "tunesmith-cases")

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
        """Begin to make the cases of these problems in other threads, the first ones first, as far as there is room for
        their operands beside the two cases in use; returns at once.

        Cases that were begun by an earlier call and not fetched since are dropped, if others are begun. So are kept
        cases of other problems whose room is needed, the least recently used first.
        """
        asked_for = {problem.to_json(): problem for problem in problems}
        missing = {key: problem for key, problem in asked_for.items() if key not in self._kept}
        if missing.keys() <= self._pending.keys():
            return
        for key in self._pending.keys() - missing.keys():
            self._pending.pop(key).cancel()
        needed = dict.fromkeys((*(key for key in asked_for if key in self._kept), *list(self._kept)[-_IN_USE:]))
        for key in needed:
            self._kept.move_to_end(key)
        room = _most_bytes() - sum(self._kept[key].size for key in needed)
        begun = 0
        for key, problem in missing.items():
            size = sum(map(storage_bytes, OPERATIONS[problem.type.operation].operands(problem)))
            if key not in self._pending and (begun + size <= room or not self._pending):
                self._pending[key] = self._threads.submit(self._make, problem)
            begun += size if key in self._pending else 0
        self._make_room(begun, keep=len(needed))

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

    def _make_room(self, size: float, keep: int = 1) -> None:
        """Drop what is not needed soon. The last case stays whatever its size, since every candidate of a problem is
        verified on two cases in turn."""
        while len(self._kept) > keep and sum(case.size for case in self._kept.values()) + size > _most_bytes():
            self._kept.popitem(last=False)


def _most_bytes() -> float:
    return _KEPT_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
