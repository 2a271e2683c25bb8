"""How many work-groups a fill takes, and one launch made into another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.problems.random import GeneratorKind, GeneratorSpec
from tunesmith.records import Launch, ScalarArgument

STORES = {GeneratorKind.COUNTER: 8, GeneratorKind.QUASI: 4}
"""Stores of 16 bytes that every work-item should have to make, since it costs something to begin: a work-group of a
Sobol generator makes tables first. Engines are not limited: how many there are is part of their sequence."""

COUNT = 1
"""Which argument of `generate` is the number of values."""


def groups(generator: GeneratorSpec, block: int, grid: int, size: int) -> int:
    """`grid` work-groups of `block` work-items, or fewer where `size` bytes (for each dimension) are too little work.

    Counters keep as many as by default while each work-item has a store to make: a small buffer should fill a GPU.
    """
    if generator.kind not in STORES:
        return grid
    stores = -(-size // 16)
    worthwhile = -(-stores // (STORES[generator.kind] * block))
    if generator.kind is GeneratorKind.COUNTER:
        worthwhile = max(worthwhile, min(generator.default_grid, -(-stores // block)))
    return min(grid, max(1, worthwhile))


def start_argument(generator: GeneratorSpec) -> int:
    """Which argument of `generate` is the word or point to begin with, or the engine that is asked first."""
    return 4 if generator.kind is GeneratorKind.QUASI else 3


def changed(launch: Launch, grid: int, numbers: Sequence[tuple[int, int]]) -> Launch:
    """The launch with `grid` work-groups in x and other scalar arguments, pairs of a place and a value."""
    arguments = list(launch.arguments)
    for index, value in numbers:
        before = arguments[index]
        assert isinstance(before, ScalarArgument)
        arguments[index] = ScalarArgument(value, before.dtype)
    return replace(launch, grid=(grid, *launch.grid[1:]), arguments=tuple(arguments))
