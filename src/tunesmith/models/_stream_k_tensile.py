"""Tensile's two predictions for stream-K, as published, to compare with: which grid, and how many tiles.

Both were fitted on one chip with 304 compute units. Sources: ROCm/Tensile pull requests 1929 (the grid, with the four
costs), 1934 (full tiles, with the curve) and 2042 (which lets the grid search reach other devices). What is known to be
wrong with them is kept, since it is what is compared with: the cost of a tile that is split over shares of more than a
tile is none, and costs are those of one tile shape and data type.
"""

from __future__ import annotations

import bisect

import numpy as np

from tunesmith.kernels.gemm.stream_k import ceil_div, streamed_tiles

from ._stream_k_records import Choice, Work

PUBLISHED_UNITS = 304
"""Compute units of the chip of the curve, and the only ones that it is used for there."""

START, PARTIAL, ITERATION, PEER = 5.04 + 8.30, 5.47, 4.17, 18.59
"""About microseconds: launch with cold caches and the output, partial sums, one iteration, one peer's sums."""

CURVE = {
    512: 304,
    768: 201,
    1024: 75,
    1536: 40,
    2048: 30,
    3072: 21,
    4096: 14,
    5120: 11,
    6144: 9,
    7168: 8,
    8192: 5,
    16384: 4,
}
"""By K: the fewest remainder tiles that are better streamed alone. Linear in between."""

_KS, _THRESHOLDS = tuple(CURVE), tuple(CURVE.values())

ROUNDS = (1, 2, 4, 8, 16, 32)
ENOUGH = 0.75
"""Share of the compute units that equal waves must keep busy for the grid to shrink to them."""


def full_tiles(remainder: int, k: int, compute_units: int, gated: bool = True) -> int:
    """Whole waves that are streamed beside the remainder: 0 or 1. `k` is rounded up to whole iterations.

    Published for 304 compute units, 0 on all others; not `gated`, the same curve holds everywhere.
    """
    if remainder == 0 or (gated and compute_units != PUBLISHED_UNITS):
        return 0
    return 0 if remainder >= threshold(k) else 1


def threshold(k: int) -> float:
    """The curve; infinite below it, where a full wave always goes along, and flat behind."""
    if k < _KS[0]:
        return float("inf")
    if k >= _KS[-1]:
        return _THRESHOLDS[-1]
    place = bisect.bisect_right(_KS, k)
    (k0, k1), (t0, t1) = _KS[place - 1 : place + 1], _THRESHOLDS[place - 1 : place + 1]
    return t0 + (t1 - t0) * (k - k0) / (k1 - k0)


def seconds(tiles: int, iterations: int, grid: int) -> float:
    """Expected time of a grid on which everything is streamed."""
    each = ceil_div(tiles * iterations, grid)
    peers = ceil_div(iterations, each)
    return 1e-6 * (START + PARTIAL * (peers > 1) + ITERATION * each + PEER * (peers - 1))


def analytical_grid(tiles: int, iterations: int, compute_units: int) -> int:
    """The grid with the least `seconds`, of equals the smallest: every one from 1 to the compute units is looked at."""
    grid = np.arange(1, compute_units + 1)
    each = -(-tiles * iterations // grid)
    peers = -(-iterations // each)
    times = START + PARTIAL * (peers > 1) + ITERATION * each + PEER * (peers - 1)
    return int(grid[times.argmin()])


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


def choice(work: Work, compute_units: int, gated: bool) -> Choice:
    """The defaults: a work-group a compute unit, and what the curve says of the remainder."""
    grid = compute_units
    full = full_tiles(work.tiles % grid, work.k, compute_units, gated)
    return Choice(grid, streamed_tiles(work.tiles, grid, full))
