"""The tiles of cuBLASLt's plans, which names each by a number.

Source: `cublasLtMatmulTile_t` in NVIDIA's header cublasLt.h (CUDA 13.1). The first numbers name tiles one by one. Those
behind follow rules, which skip the tiles that have a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

NAMED = (
    *("8x8", "8x16", "16x8", "8x32", "16x16", "32x8", "8x64", "16x32", "32x16", "64x8", "32x32", "32x64", "64x32"),
    *("32x128", "64x64", "128x32", "64x128", "128x64", "64x256", "128x128", "256x64", "64x512", "128x256", "256x128"),
    *("512x64", "64x96", "96x64", "96x128", "128x160", "160x128", "192x128", "128x192", "128x96", "32x256", "256x32"),
)
LAST = ((256, 512), (256, 1024), (512, 512), (512, 1024))
FINE, COARSE, LONGEST = 8, 64, 768
"""Of the tiles that follow rules, one side is a multiple of FINE and the other of COARSE. None is longer than LONGEST.
"""
MOST_ALONG_N, MOST_ALONG_M = 64 * 768, 128 * 512
"""The most elements of those whose N, and of those whose M, is a multiple of COARSE."""


@cache
def tile_sides() -> NDArray[np.float64]:
    """M and N of the tile of each number, in two columns; 1 x 1 for 0, which names none."""
    sides = dict.fromkeys((int(m), int(n)) for m, n in (name.split("x") for name in NAMED))
    for m, n in (*_of_steps(FINE, COARSE, MOST_ALONG_N), *_of_steps(COARSE, FINE, MOST_ALONG_M), *LAST):
        sides.setdefault((m, n))
    return np.array([(1, 1), *sides], float)


def sides_of(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """M and N of the tiles with these numbers, in two columns; 1 x 1 for a number that is not known."""
    sides = tile_sides()
    known = (numbers >= 0) & (numbers < len(sides))
    return sides[np.where(known, numbers, 0).astype(np.intp)]


def _of_steps(m_step: int, n_step: int, most: int) -> Iterator[tuple[int, int]]:
    for m in range(m_step, LONGEST + 1, m_step):
        for n in range(n_step, LONGEST + 1, n_step):
            if m * n <= most:
                yield m, n
