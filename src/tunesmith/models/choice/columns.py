"""The parameters of configurations as columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Solution, Value

Floats = NDArray[np.float64]
KERNEL = "Kernel"
"""The name of the column that tells families apart."""
ABSENT = -1.0
"""The number of a parameter that a solution does not have, and of a word that no solution of the fit had."""


@dataclass(frozen=True, slots=True)
class ParameterColumn:
    """One number of each configuration: the parameter `name`, or item `position` of a list. Words are numbered in their
    order in `words`; numbers and truth values become log2(1 + value)."""

    name: str
    position: int = 0
    words: tuple[str, ...] = ()

    def number(self, solution: Solution) -> float:
        value = solution.kernel if self.name == KERNEL else solution.configuration.get(self.name)
        item = _item(value, self.position)
        if isinstance(item, str):
            return float(self.words.index(item)) if item in self.words else ABSENT
        return math.log2(1 + item) if isinstance(item, (int, float)) and item > -1 else ABSENT


def columns_of(solutions: Sequence[Solution]) -> tuple[ParameterColumn, ...]:
    """The columns in which these solutions differ, by name."""
    words: dict[tuple[str, int], set[str]] = {}
    for solution in solutions:
        for name, position, item in _items({KERNEL: solution.kernel, **solution.configuration}):
            words.setdefault((name, position), set()).update({item} if isinstance(item, str) else ())
    columns = (ParameterColumn(name, position, tuple(sorted(found))) for (name, position), found in words.items())
    varying = (column for column in columns if len({column.number(solution) for solution in solutions}) > 1)
    return tuple(sorted(varying, key=lambda column: (column.name, column.position)))


def numbers_of(columns: Sequence[ParameterColumn], solutions: Sequence[Solution]) -> Floats:
    """A row of numbers for each solution."""
    rows = [[column.number(solution) for column in columns] for solution in solutions]
    return np.array(rows, float).reshape(len(solutions), len(columns))


def _items(values: Mapping[str, Value]) -> Iterator[tuple[str, int, Value]]:
    for name, value in values.items():
        for position, item in enumerate(value if isinstance(value, tuple) else (value,)):
            yield name, position, item


def _item(value: Value | None, position: int) -> Value | None:
    if isinstance(value, tuple):
        return value[position] if position < len(value) else None
    return value if position == 0 else None
