"""The stream-K prediction for a device without a calibration: ratios only, in iterations of the tile's main loop.

Two facts carry over from one chip to another: how much a split costs compared with an iteration, and how few iterations
a share may have before splitting stops paying. Two systems agree on the latter (three iterations in Tensile's measured
curve, at least two in CUTLASS) and on when halving a tile pays (from 12 iterations on).
"""

from __future__ import annotations

import math

from tunesmith.kernels.gemm.stream_k import ceil_div

from .records import StreamKChoice, TiledProduct

FEWEST_ITERATIONS = 3
"""The fewest iterations of a share. Tensile's curve is remainder x K / grid = 194 steps, with 64 steps an iteration,
from K = 1024 on (pull request 1934; the fit is ours)."""

PARTIAL, PEER = 1.312, 4.457
"""Costs in iterations: of partial sums at all, and of each further work-group. Both sets of constants that were
published for Tensile's model have these ratios (pull request 1929 and its successor's); CUTLASS has 2 and 2."""

FULL_ENOUGH = 0.92
"""The share of work-groups, over all waves, that data-parallel must keep busy. Source: CUTLASS."""


def choice(work: TiledProduct, grid: int) -> StreamKChoice:
    """How to launch the product on at most `grid` work-groups.

    - No more tiles than work-groups: each tile is split among as many work-groups as pays.
    - Waves are full enough, or splitting saves too little: data-parallel.
    - Otherwise the remainder is split, with one full wave if its shares would have fewer than three iterations.
    """
    if work.tiles <= grid:
        return _few_tiles(work, grid)
    remainder = work.tiles % grid
    saved = work.iterations * (1 - remainder / grid)
    if remainder == 0 or work.tiles >= FULL_ENOUGH * ceil_div(work.tiles, grid) * grid or saved <= PARTIAL + PEER:
        return StreamKChoice(grid)
    with_full_wave = remainder * work.iterations < FEWEST_ITERATIONS * grid
    return StreamKChoice(grid, remainder + (grid if with_full_wave else 0))


def _few_tiles(work: TiledProduct, groups: int) -> StreamKChoice:
    """For no more tiles than work-groups: the number of parts for which the longest part and its fix-up together take
    least."""

    if not work.tiles:
        return StreamKChoice(1)

    def iterations(parts: int) -> float:
        return ceil_div(work.iterations, parts) + (PARTIAL + PEER * (parts - 1) if parts > 1 else 0)

    # The best number is near sqrt(iterations / PEER), and PEER is above 2. Two parts pay from 12 iterations on, so that
    # no share has fewer than FEWEST_ITERATIONS.
    most = min(groups // work.tiles, math.isqrt(work.iterations))
    parts = min(range(1, max(most, 1) + 1), key=iterations)
    return StreamKChoice(work.tiles * parts, work.tiles if parts > 1 else 0)
