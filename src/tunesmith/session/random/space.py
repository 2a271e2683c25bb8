"""The launch shapes to try for random generators: a matrix of block and grid sizes, which can grow at its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tunesmith.records import LaunchShape, Target

BLOCK_SIZES = (64, 128, 256, 512, 1024)
GRID_SIZES = (64, 128, 256, 512, 1024, 2048)
MIN_THREADS = 32768
"""rocRAND's `BENCHMARK_TUNING_THREAD_OPTIONS`, `..._BLOCK_OPTIONS` and `..._MIN_GRID_SIZE`."""

WAVES = (2, 4, 8, 16, 32)
"""Work-groups for each compute unit of a GPU: a few that are resident at once, and several times as many."""

THREADS_OF_A_UNIT = 2048
GROUPS_OF_A_UNIT = 32
RESERVED_BYTES = 1024
"""Limits of a GPU's compute unit: the most resident work-items and work-groups, and the local memory that each
work-group needs beside its own (CUDA programming guide, compute capabilities 8.0 and 9.0; elsewhere a fair guess)."""

LARGEST_GRID = 1 << 16
SMALLEST_GRID = 1


@dataclass(frozen=True, slots=True)
class LaunchMatrix:
    """Block and grid sizes, ascending, and shapes that fill a GPU. All pairs with enough threads are tried."""

    blocks: tuple[int, ...]
    grids: tuple[int, ...]
    min_threads: int
    filling: tuple[LaunchShape, ...] = ()

    def shapes(self) -> tuple[LaunchShape, ...]:
        """The shapes to try. Block sizes vary fastest, as in rocRAND's benchmark."""
        pairs = (LaunchShape(block, grid) for grid in self.grids for block in self.blocks)
        return tuple(dict.fromkeys((*(shape for shape in pairs if shape.threads >= self.min_threads), *self.filling)))

    def shared_by(self, dimensions: int) -> LaunchMatrix:
        """The matrix for one of so many dimensions, which share the work-groups."""
        grids = sorted({max(1, grid // dimensions) for grid in self.grids})
        return LaunchMatrix(self.blocks, tuple(grids), max(1, self.min_threads // dimensions))

    def beyond(self, chosen: Iterable[LaunchShape]) -> LaunchMatrix:
        """The matrix with a further grid size at each edge on which a chosen shape lies; the same matrix if none does.

        A chosen shape is also on the lower edge if the next smaller grid has fewer threads than `min_threads`.
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
    """The matrix of the requested sizes. Sizes that are not requested are rocRAND's.

    The default grids of a GPU also have multiples of its compute units. The default grids of a CPU are a few
    work-groups for each core, since a work-group is a loop there. If no grids are requested on a GPU and a work-group
    of so many work-items needs `local_bytes`, the shape that fills the GPU with resident work-groups is tried too.
    """
    allowed = tuple(block for block in BLOCK_SIZES if block <= target.max_work_group_size)
    units = target.compute_units
    if target.kind == "CPU":
        default_grids, least = {units * waves for waves in (1, 4, 16, 64)}, 1
    else:
        default_grids, least = {*GRID_SIZES, *(units * waves for waves in WAVES)}, MIN_THREADS
    block_sizes = tuple(sorted(set(blocks or allowed)))
    is_filled = target.kind == "GPU" and not grids
    return LaunchMatrix(
        block_sizes,
        tuple(sorted(set(grids or default_grids))),
        least if min_threads is None else min_threads,
        tuple(_filling(target, block, need) for block in block_sizes if is_filled and (need := local_bytes(block))),
    )


def _filling(target: Target, block: int, need: int) -> LaunchShape:
    """The shape with as many work-groups of `block` work-items and `need` bytes of local memory as are resident at
    once."""
    by_memory = target.local_memory_bytes // (need + RESERVED_BYTES)
    resident = min(by_memory, THREADS_OF_A_UNIT // block, GROUPS_OF_A_UNIT)
    return LaunchShape(block, target.compute_units * max(1, resident))
