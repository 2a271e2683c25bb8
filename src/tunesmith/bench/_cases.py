"""Problems made ready for verification: random inputs and the reference's answer, kept by size."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from tunesmith.problems import OPERATIONS, Array
from tunesmith.records import Problem

from ._verify import Case

_KEPT_BYTES = 1 << 30


class Cases:
    """Cases by problem, the least recently used forgotten first. The same seed and problem give the same numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kept: OrderedDict[str, Case] = OrderedDict()

    def get(self, problem: Problem) -> Case:
        key = problem.to_json()
        if key not in self._kept:
            operation = OPERATIONS[problem.type.operation]
            inputs = operation.inputs(problem, self._random(key))
            case = Case(operation.operands(problem), inputs, operation.reference(problem, inputs))
            self._make_room(case.size)
            self._kept[key] = case
        self._kept.move_to_end(key)
        return self._kept[key]

    def inputs(self, problem: Problem) -> Mapping[str, Array]:
        """The numbers alone, where no reference is asked for."""
        key = problem.to_json()
        if key in self._kept:
            return self._kept[key].inputs
        return OPERATIONS[problem.type.operation].inputs(problem, self._random(key))

    def _random(self, key: str) -> np.random.Generator:
        return np.random.default_rng([self._seed, int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little")])

    def _make_room(self, size: int) -> None:
        while self._kept and sum(case.size for case in self._kept.values()) + size > _KEPT_BYTES:
            self._kept.popitem(last=False)
