"""Tiles for products with a vector. Memory bounds them, so a tile only has to keep all compute units reading."""

from __future__ import annotations

from .situation import PolicyInput
from .wish import TileWish

ALONG_K, ACROSS_K = (16, 256), (128, 32)
"""Elements of D and steps along K of a tile, for a matrix that is contiguous along K, and for one that is not."""
TILED, VECTOR_SIDE = (64, 128), 16
"""The same for families without a kernel for vectors, for either layout; and the side of their tiles along the
dimension of size 1."""
MOST_SPLITS, LEAST_ITERATIONS = 16, 4
GROUPS_A_UNIT = 2
"""Work-groups per compute unit that keep memory busy, for families without tiles. With tiles, one is enough."""


def vector_wish(situation: PolicyInput, is_for_vectors: bool) -> TileWish:
    """A flat tile, with K split if D has too few elements to keep the device busy. `is_for_vectors`: the family has no
    tiles, but reads the matrix once."""
    gemm = situation.gemm
    is_column = gemm.n == 1
    along_k = gemm.transpose_a if is_column else not gemm.transpose_b
    rows, depth = (ALONG_K if along_k else ACROSS_K) if is_for_vectors else TILED
    length = gemm.m if is_column else gemm.n
    groups, split = -(-length // rows) * gemm.batch, 1
    most = (GROUPS_A_UNIT if is_for_vectors else 1) * situation.units
    while 2 * split <= MOST_SPLITS and groups * 2 * split <= most and gemm.k >= 2 * split * depth * LEAST_ITERATIONS:
        split *= 2
    m, n = (rows, VECTOR_SIDE) if is_column else (VECTOR_SIDE, rows)
    return TileWish(m, n, depth, sub_groups=(4, 1) if is_column else (1, 4), split=split)
