"""Configurations as numbers that a model can learn from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Configuration, Value

from .base import Describe

Features = NDArray[np.float64]

_SMALLEST = 0.5
"""What a zero counts as: half of one, so that it is finite on a logarithmic scale."""


def features(configurations: Sequence[Configuration], describe: Describe) -> Features:
    """A row for each configuration; columns that tell nothing are left out.

    Numbers become binary logarithms, since parameters are sizes; a list gives one for each of its numbers and one for
    their product; truth values are 0 and 1; of words each has a column of its own. What a configuration does not have
    counts as zero.
    """
    described = [{**config, **describe(config)} for config in configurations]
    names = sorted({name for one in described for name in one})
    columns = [column for name in names for column in _columns([one.get(name, 0) for one in described])]
    telling = [column for column in columns if column.size and column.min() < column.max()]
    return np.stack(telling, axis=1) if telling else np.zeros((len(configurations), 1))


def _columns(values: Sequence[Value]) -> Iterator[NDArray[np.float64]]:
    words = sorted({value for value in values if isinstance(value, str)})
    yield from (np.array([float(value == word) for value in values]) for word in words)
    lists = [value if isinstance(value, tuple) else (value,) for value in values if not isinstance(value, str)]
    for index in range(max(map(len, lists), default=0)):
        yield np.array([_logarithm(_item(value, index)) for value in values])
    if any(len(one) > 1 for one in lists):
        yield np.array([_product(value) for value in values])


def _item(value: Value, index: int) -> Value:
    if isinstance(value, tuple):
        return value[index] if index < len(value) else 0
    return value if index == 0 else 0


def _product(value: Value) -> float:
    return sum(_logarithm(item) for item in value) if isinstance(value, tuple) else _logarithm(value)


def _logarithm(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float(value is True)
    return math.log2(value if value > 0 else _SMALLEST)
