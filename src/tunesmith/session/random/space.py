"""The launch shapes that random generators are tried with: a matrix, multiples of the device, and growth at an edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tunesmith.records import LaunchShape, Target

BLOCK_SIZES = (64, 128, 256, 512, 1024)
GRID_SIZES = (64, 128, 256, 512, 1024, 2048)
MIN_THREADS = 32768
"""rocRAND's `BENCHMARK_TUNING_THREAD_OPTIONS`, `..._BLOCK_OPTIONS` and `..._MIN_GRID_SIZE`."""

WAVES = (2, 4, 8, 16, 32)
"""Work-groups for each compute unit of a GPU: a few resident ones, and several turns of these."""

THREADS_OF_A_UNIT = 2048
GROUPS_OF_A_UNIT = 32
RESERVED_BYTES = 1024
"""Of a GPU's compute unit: work-items and work-groups that are resident at most, and local memory that each work-group
costs beside its own (CUDA programming guide, compute capabilities 8.0 and 9.0; elsewhere a fair guess)."""

LARGEST_GRID = 1 << 16
SMALLEST_GRID = 1


@dataclass(frozen=True, slots=True)
class LaunchMatrix:
    """Block and grid sizes, ascending, of which all pairs with enough threads are tried; and shapes that fill a GPU."""

    blocks: tuple[int, ...]
    grids: tuple[int, ...]
    min_threads: int
    filling: tuple[LaunchShape, ...] = ()

    def shapes(self) -> tuple[LaunchShape, ...]:
        """Block sizes vary fastest, as in rocRAND's benchmark."""
        pairs = (LaunchShape(block, grid) for grid in self.grids for block in self.blocks)
        return tuple(dict.fromkeys((*(shape for shape in pairs if shape.threads >= self.min_threads), *self.filling)))

    def shared_by(self, dimensions: int) -> LaunchMatrix:
        """The same number of work-groups dealt to so many dimensions."""
        grids = sorted({max(1, grid // dimensions) for grid in self.grids})
        return LaunchMatrix(self.blocks, tuple(grids), max(1, self.min_threads // dimensions))

    def beyond(self, chosen: Iterable[LaunchShape]) -> LaunchMatrix:
        """With a grid size more on each edge of the grids that a chosen shape lies on; itself where none does.

        A chosen shape is on the lower edge also where fewer threads than `min_threads` would have been next.
        """
        grids, least = set(self.grids), self.min_threads
        for shape in chosen:
            if shape.grid == self.grids[-1] and 2 * shape.grid <= LARGEST_GRID:
                grids.add(2 * shape.grid)
            smaller = [grid for grid in self.grids if grid < shape.grid]
            is_floor = not smaller or shape.block * smaller[-1] < self.min_threads
            if is_floor and shape.grid // 2 >= SMALLEST_GRID:
                grids.add(shape.grid // 2)
                least = min(least, shape.block * (shape.grid // 2))
        return LaunchMatrix(self.blocks, tuple(sorted(grids)), least, self.filling)


def matrix_for(
    target: Target,
    blocks: Sequence[int] | None,
    grids: Sequence[int] | None,
    min_threads: int | None,
    local_bytes: Callable[[int], int] = lambda block: 0,
) -> LaunchMatrix:
    """What was asked for; what was not is rocRAND's, with grids in multiples of a GPU's compute units, and on a CPU a
    few for each core, where a work-group is a loop.

    On a GPU also, where no grid sizes are asked for and a work-group of so many work-items has `local_bytes`, as many
    work-groups as are resident at once.
    """
    allowed = tuple(block for block in BLOCK_SIZES if block <= target.max_work_group_size)
    units = target.compute_units
    if target.kind == "CPU":
        own_grids, least = {units * waves for waves in (1, 4, 16, 64)}, 1
    else:
        own_grids, least = {*GRID_SIZES, *(units * waves for waves in WAVES)}, MIN_THREADS
    tried = tuple(sorted(set(blocks or allowed)))
    is_limited = target.kind == "GPU" and not grids
    return LaunchMatrix(
        tried,
        tuple(sorted(set(grids or own_grids))),
        least if min_threads is None else min_threads,
        tuple(_filling(target, block, need) for block in tried if is_limited and (need := local_bytes(block))),
    )


def _filling(target: Target, block: int, need: int) -> LaunchShape:
    """All work-groups of `block` work-items and `need` bytes of local memory that are resident at once."""
    by_memory = target.local_memory_bytes // (need + RESERVED_BYTES)
    resident = min(by_memory, THREADS_OF_A_UNIT // block, GROUPS_OF_A_UNIT)
    return LaunchShape(block, target.compute_units * max(1, resident))
