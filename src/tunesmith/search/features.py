"""Turns configurations into numbers from which a model can learn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Configuration, Value

from .base import Describe

Features = NDArray[np.float64]

_SMALLEST = 0.5
"""The number that stands for zero: half of 1, so that its logarithm is finite."""


def features(configurations: Sequence[Configuration], describe: Describe) -> Features:
    """A row for each configuration. Constant columns are left out.

    Numbers become binary logarithms, since parameters are sizes. A list gives a column for each of its numbers and one
    for their product. Truth values are 0 and 1. Each word has a column of its own. A missing parameter counts as zero.
    """
    described = [{**config, **describe(config)} for config in configurations]
    names = sorted({name for values in described for name in values})
    columns = [column for name in names for column in _columns([values.get(name, 0) for values in described])]
    varying = [column for column in columns if column.size and column.min() < column.max()]
    return np.stack(varying, axis=1) if varying else np.zeros((len(configurations), 1))


def _columns(values: Sequence[Value]) -> Iterator[NDArray[np.float64]]:
    words = sorted({value for value in values if isinstance(value, str)})
    yield from (np.array([float(value == word) for value in values]) for word in words)
    lengths = [len(value) if isinstance(value, tuple) else 1 for value in values if not isinstance(value, str)]
    for index in range(max(lengths, default=0)):
        yield np.array([_logarithm(_item(value, index)) for value in values])
    if any(length > 1 for length in lengths):
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
