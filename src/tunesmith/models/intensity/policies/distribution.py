"""Turns a seed into a tile: distributes unit tiles and sub-groups over M and N, and sets K by a greatest common
divisor.

Source: the facts of IREE's `GPUHeuristics.cpp` (b48a5955) and of pull requests 21931, 23619 and 23834; own code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .seeds import TileSeed
from .situation import PolicyInput
from .wish import TileWish

LONG, MANY_TILES = 4, 8
"""If a seed has at least MANY_TILES tiles and the longer side is at least LONG times the shorter side, the longer side
gets the tiles that are left over."""
COARSE, FINE = 128, 32
"""A size above COARSE is rounded up to a multiple of COARSE; else above FINE, to a multiple of FINE."""


@dataclass(frozen=True, slots=True)
class SeedShares:
    """The sub-groups along M and N, and the unit tiles of each sub-group along M and N."""

    groups: tuple[int, int]
    tiles: tuple[int, int]

    @property
    def is_least(self) -> bool:
        """Whether there is only one unit tile."""
        return self.groups == self.tiles == (1, 1)


def padded(extent: int) -> int:
    """An extent above 128 rounded up to a multiple of 128; one above 32 rounded up to a multiple of 32."""
    step = COARSE if extent > COARSE else FINE if extent > FINE else 1
    return -(-extent // step) * step


def dealt(rows: int, columns: int, seed: TileSeed) -> SeedShares:
    """The shares of a seed for a D of `rows` x `columns` unit tiles. A factor that divides neither side stays
    unused."""
    groups = 1 << -(-_log2(seed.sub_groups) // 2)
    tiles = 1 << _log2(seed.tiles) // 2
    if rows % (groups * tiles) == 0:
        shares = _m_first(groups, tiles, columns, seed)
    elif columns % (groups * tiles) == 0:
        shares = _transposed(_m_first(groups, tiles, rows, seed))
    else:
        n_groups = math.gcd(columns, seed.sub_groups)
        shares = _transposed(_m_first(n_groups, math.gcd(columns // n_groups, seed.tiles), rows, seed))
    if shares.is_least and seed.sub_groups * seed.tiles > 1:
        shares = _powers_of_two(rows, columns, groups, tiles, seed)
    return _with_surplus(shares, rows, columns, seed)


def _m_first(m_groups: int, m_tiles: int, columns: int, seed: TileSeed) -> SeedShares:
    """M gets the given sub-groups and tiles. N gets those factors of the rest of the seed that divide `columns`."""
    n_groups = math.gcd(columns, seed.sub_groups // m_groups)
    return SeedShares((m_groups, n_groups), (m_tiles, math.gcd(columns // n_groups, seed.tiles // m_tiles)))


def _transposed(shares: SeedShares) -> SeedShares:
    return SeedShares(shares.groups[::-1], shares.tiles[::-1])


def _powers_of_two(rows: int, columns: int, groups: int, tiles: int, seed: TileSeed) -> SeedShares:
    """Powers of two up to the extents, for counts that have no divisor in common with the seed."""
    m_groups = min(groups, 1 << _log2(rows))
    n_groups = min(seed.sub_groups // m_groups, 1 << _log2(columns))
    m_tiles = min(tiles, 1 << _log2(max(1, rows // m_groups)))
    return SeedShares(
        (m_groups, n_groups), (m_tiles, min(seed.tiles // m_tiles, 1 << _log2(max(1, columns // n_groups))))
    )


def _with_surplus(shares: SeedShares, rows: int, columns: int, seed: TileSeed) -> SeedShares:
    """The shares with left-over tiles given to the longer side, if it is much longer than the other side."""
    surplus = seed.tiles // (shares.tiles[0] * shares.tiles[1])
    if max(rows, columns) < LONG * min(rows, columns) or seed.tiles < MANY_TILES or surplus < 2:
        return shares
    longer_side = int(columns > rows)
    uncovered = (rows, columns)[longer_side] // (shares.groups[longer_side] * shares.tiles[longer_side])
    tiles = list(shares.tiles)
    tiles[longer_side] *= math.gcd(max(1, uncovered), surplus)
    return replace(shares, tiles=(tiles[0], tiles[1]))


def tile_of(seed: TileSeed, situation: PolicyInput, is_padded: bool) -> TileWish:
    """The tile of a seed for a product. `is_padded` rounds M and N up first (the step `alignment`)."""
    unit, product = situation.unit, situation.product
    m, n = (padded(product.m), padded(product.n)) if is_padded else (product.m, product.n)
    shares = dealt(-(-m // unit.m), -(-n // unit.n), seed)
    seed_k_tiles = seed.tiles_along_k(situation.element_bytes, unit.k)
    k_tiles = math.gcd(-(-product.k // unit.k), seed_k_tiles)
    return TileWish(
        m=unit.m * shares.groups[0] * shares.tiles[0],
        n=unit.n * shares.groups[1] * shares.tiles[1],
        depth=unit.k * k_tiles,
        sub_groups=shares.groups,
    )


def _log2(count: int) -> int:
    """The binary logarithm, rounded down."""
    return max(1, count).bit_length() - 1
