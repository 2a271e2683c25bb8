"""The grid sizes that are worth measuring on a device, from its number of compute units."""

from __future__ import annotations

USUAL = (128, 256, 512, 1024, 2048)
MULTIPLES = (4, 5, 8, 10, 16, 32)
SMALLEST, LARGEST = 128, 4096


def grid_sizes(compute_units: int) -> tuple[int, ...]:
    """The usual sizes, and the multiples of the compute units (multiprocessors) from 128 to 4096; ascending.

    The rule of rocRAND's `get_tuned_grid_sizes.py`, which gives the list for BENCHMARK_TUNING_BLOCK_OPTIONS.
    """
    multiples = (factor * compute_units for factor in MULTIPLES)
    return tuple(sorted({*USUAL, *(size for size in multiples if SMALLEST <= size <= LARGEST)}))
