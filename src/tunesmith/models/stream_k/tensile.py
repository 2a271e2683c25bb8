"""Tensile's two stream-K predictions as published, to compare with: the grid, and the number of streamed tiles.

Both were fitted on one chip with 304 compute units. Sources: ROCm/Tensile pull requests 1929 (the grid, with the four
costs), 1934 (full tiles, with the curve) and 2042 (which lets the grid search reach other devices). Their known errors
are kept, since the comparison is with the published predictor: splitting a tile over shares longer than a tile costs
nothing, and the costs are those of one tile shape and data type.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunesmith.kernels.gemm.stream_k import ceil_div

PUBLISHED_UNITS = 304
"""Compute units of the chip that the curve was measured on. Tensile uses the curve for this number only."""

START, PARTIAL, ITERATION, PEER = 5.04 + 8.30, 5.47, 4.17, 18.59
"""In about microseconds: launch with cold caches plus the output, partial sums, one iteration, one peer's sums."""

CURVE_K = (512, 768, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 16384)
CURVE_TILES = (304, 201, 75, 40, 30, 21, 14, 11, 9, 8, 5, 4)
"""For each K, the fewest remainder tiles that are better streamed alone. The curve is linear in between."""

ROUNDS = (1, 2, 4, 8, 16, 32)
ENOUGH = 0.75
"""The share of compute units that equal waves must keep busy; otherwise the grid does not shrink to equal waves."""


def full_tiles(remainder: int, k: int, compute_units: int, gated: bool = True) -> int:
    """Whole waves that are streamed beside the remainder: 0 or 1. `k` must be rounded up to whole iterations.

    With `gated`, as published: the curve on 304 compute units, 0 on any other number. Otherwise the curve on all.
    """
    if remainder == 0 or (gated and compute_units != PUBLISHED_UNITS):
        return 0
    # For K below the curve's range a full wave is always streamed too; above the range the curve is flat.
    return int(remainder < np.interp(k, CURVE_K, CURVE_TILES, left=math.inf))


def microseconds(tiles: int, iterations: int, grid: Any) -> Any:
    """Expected time if all tiles are streamed on `grid`: an integer, or an array of grids."""
    share = -(-tiles * iterations // grid)
    peers = -(-iterations // share)
    return START + PARTIAL * (peers > 1) + ITERATION * share + PEER * (peers - 1)


def analytical_grid(tiles: int, iterations: int, compute_units: int) -> int:
    """The grid from 1 to `compute_units` with the least `microseconds`; among equals the smallest."""
    grid = np.arange(1, compute_units + 1)
    return int(grid[microseconds(tiles, iterations, grid).argmin()])


def even_grid(tiles: int, compute_units: int) -> int:
    """All compute units, or fewer with equal waves if these keep enough of them busy; never more than the tiles."""
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
    """The grid for a TENSILE_STREAMK_DYNAMIC_GRID mode: 1 at most the tiles, 2 even waves, 3 the analytical model."""
    match mode:
        case 1:
            return min(compute_units, tiles)
        case 2:
            return even_grid(tiles, compute_units)
    return analytical_grid(tiles, iterations, compute_units)
