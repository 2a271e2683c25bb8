"""The number of work-groups of a fill, and a launch with other arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.problems.random import GeneratorKind, GeneratorSpec
from tunesmith.records import Launch, ScalarArgument

STORES = {GeneratorKind.COUNTER: 8, GeneratorKind.QUASI: 4}
"""The fewest stores of 16 bytes for which a work-item is worth its start: a work-group of a Sobol generator makes
tables first. The number of engines is not limited in this way, because it is part of their sequence."""

COUNT_ARGUMENT = 1
"""The index of `generate`'s argument with the number of values."""


def work_groups_of_fill(generator: GeneratorSpec, block: int, grid: int, size: int) -> int:
    """The number of work-groups of `block` work-items: `grid`, or fewer if `size` bytes (in each dimension) are little.

    Counter-based generators keep their default number while each work-item has a store to make, so that a small buffer
    fills a GPU.
    """
    if generator.kind not in STORES:
        return grid
    stores = -(-size // 16)
    worthwhile = -(-stores // (STORES[generator.kind] * block))
    if generator.kind is GeneratorKind.COUNTER:
        worthwhile = max(worthwhile, min(generator.default_grid, -(-stores // block)))
    return min(grid, max(1, worthwhile))


def start_argument(generator: GeneratorSpec) -> int:
    """The index of `generate`'s argument with the first word or point, or the engine of the first vector."""
    return 4 if generator.kind is GeneratorKind.QUASI else 3


def with_arguments(launch: Launch, grid: int, numbers: Sequence[tuple[int, int]]) -> Launch:
    """The launch with `grid` work-groups in x and with other scalar arguments: pairs of an index and a value."""
    arguments = list(launch.arguments)
    for index, value in numbers:
        before = arguments[index]
        assert isinstance(before, ScalarArgument)
        arguments[index] = ScalarArgument(value, before.dtype)
    return replace(launch, grid=(grid, *launch.grid[1:]), arguments=tuple(arguments))
