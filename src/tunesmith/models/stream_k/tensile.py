"""Tensile's two predictions for stream-K, as published, to compare with: which grid, and how many tiles.

Both were fitted on one chip with 304 compute units. Sources: ROCm/Tensile pull requests 1929 (the grid, with the four
costs), 1934 (full tiles, with the curve) and 2042 (which lets the grid search reach other devices). What is known to be
wrong with them is kept, since it is what is compared with: the cost of a tile that is split over shares of more than a
tile is none, and costs are those of one tile shape and data type.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunesmith.kernels.gemm.stream_k import ceil_div

PUBLISHED_UNITS = 304
"""Compute units of the chip of the curve, and the only ones that it is used for there."""

START, PARTIAL, ITERATION, PEER = 5.04 + 8.30, 5.47, 4.17, 18.59
"""About microseconds: launch with cold caches and the output, partial sums, one iteration, one peer's sums."""

CURVE_K = (512, 768, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 16384)
CURVE_TILES = (304, 201, 75, 40, 30, 21, 14, 11, 9, 8, 5, 4)
"""For each K the fewest remainder tiles that are better streamed alone. Linear in between."""

ROUNDS = (1, 2, 4, 8, 16, 32)
ENOUGH = 0.75
"""Share of the compute units that equal waves must keep busy for the grid to shrink to them."""


def full_tiles(remainder: int, k: int, compute_units: int, gated: bool = True) -> int:
    """Whole waves that are streamed beside the remainder: 0 or 1. `k` is rounded up to whole iterations.

    Published for 304 compute units, 0 on all others; not `gated`, the same curve holds everywhere.
    """
    if remainder == 0 or (gated and compute_units != PUBLISHED_UNITS):
        return 0
    # Below the curve a full wave always goes along, behind it the curve is flat.
    return int(remainder < np.interp(k, CURVE_K, CURVE_TILES, left=math.inf))


def microseconds(tiles: int, iterations: int, grid: Any) -> Any:
    """Expected time of a grid on which everything is streamed, or of each grid in an array."""
    each = -(-tiles * iterations // grid)
    peers = -(-iterations // each)
    return START + PARTIAL * (peers > 1) + ITERATION * each + PEER * (peers - 1)


def analytical_grid(tiles: int, iterations: int, compute_units: int) -> int:
    """Of all grids from 1 to the compute units that with the least `microseconds`, of equals the smallest."""
    grid = np.arange(1, compute_units + 1)
    return int(grid[microseconds(tiles, iterations, grid).argmin()])


def even_grid(tiles: int, compute_units: int) -> int:
    """All compute units, or fewer with equal waves while enough of them stay busy; no more than there are tiles."""
    grid = compute_units
    if tiles > compute_units:
        for rounds in ROUNDS:
            waves = ceil_div(rounds * tiles, compute_units)
            reduced = ceil_div(rounds * tiles, waves)
            if reduced / compute_units > ENOUGH:
                grid = min(reduced, compute_units)
                break
    return min(grid, tiles)


def dynamic_grid(mode: int, tiles: int, iterations: int, compute_units: int) -> int:
    """TENSILE_STREAMK_DYNAMIC_GRID: 1 no more than the tiles, 2 even waves, 3 the analytical model."""
    match mode:
        case 1:
            return min(compute_units, tiles)
        case 2:
            return even_grid(tiles, compute_units)
    return analytical_grid(tiles, iterations, compute_units)
