"""A prediction for a device that nobody calibrated: ratios only, in iterations of the tile's main loop.

What carries over from one chip to another is how much a split costs compared with an iteration, and how few iterations
a share may have before splitting is not worth its while. Two systems agree on the latter (three iterations in Tensile's
measured curve, two at least in CUTLASS) and on where a tile is worth halving (from 12 iterations).
"""

from __future__ import annotations

import math

from tunesmith.kernels.gemm.stream_k import ceil_div

from .records import StreamKChoice, Work

FEWEST_ITERATIONS = 3
"""Of a share. Tensile's curve is remainder x K / grid = 194 steps of 64 an iteration, from K = 1024 on (pull request
1934; the fit is ours)."""

PARTIAL, PEER = 1.312, 4.457
"""Iterations that partial sums cost at all, and those of each further work-group. The same in both sets of constants
that were published for Tensile's model (pull request 1929 and its successor's); CUTLASS has 2 and 2."""

FULL_ENOUGH = 0.92
"""Share of the last wave's work-groups, over all waves, that data-parallel must keep busy. Source: CUTLASS."""


def choice(work: Work, grid: int) -> StreamKChoice:
    """Data-parallel where its waves are full or splitting saves too little; else the remainder, with a full wave where
    shares would otherwise have fewer than three iterations; few tiles over so many work-groups as pays, `grid` at
    most."""
    if work.tiles <= grid:
        return _few(work, grid)
    left = work.tiles % grid
    saved = work.iterations * (1 - left / grid)
    if left == 0 or work.tiles >= FULL_ENOUGH * ceil_div(work.tiles, grid) * grid or saved <= PARTIAL + PEER:
        return StreamKChoice(grid)
    full = left * work.iterations < FEWEST_ITERATIONS * grid
    return StreamKChoice(grid, left + (grid if full else 0))


def _few(work: Work, groups: int) -> StreamKChoice:
    """No more tiles than work-groups: each in so many parts that the longest and its fix-up take least together."""

    def iterations(parts: int) -> float:
        return ceil_div(work.iterations, parts) + (PARTIAL + PEER * (parts - 1) if parts > 1 else 0)

    # The best number is near sqrt(iterations / PEER).
    most = min(groups // max(work.tiles, 1), work.iterations // FEWEST_ITERATIONS, math.isqrt(work.iterations) + 1)
    parts = min(range(1, max(most, 1) + 1), key=iterations)
    return StreamKChoice(max(work.tiles, 1) * parts, work.tiles if parts > 1 else 0)
