"""From a seed to a tile: unit tiles dealt to M and N evenly over sub-groups, to K by the greatest common divisor.

Source: the facts of IREE's `GPUHeuristics.cpp` (b48a5955) and of pull requests 21931, 23619 and 23834; own code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .seeds import TileSeed
from .situation import Situation
from .wish import TileWish

LONG, MANY_TILES = 4, 8
"""Times the shorter side from which the longer one gets what is left over, of seeds with so many tiles."""
COARSE, FINE = 128, 32
"""What sizes above them are rounded up to, before tiles are dealt."""


@dataclass(frozen=True, slots=True)
class SeedShares:
    """Sub-groups, and unit tiles of each sub-group, along M and N."""

    groups: tuple[int, int]
    tiles: tuple[int, int]

    @property
    def is_least(self) -> bool:
        """Whether one unit tile is all."""
        return self.groups == self.tiles == (1, 1)


def padded(extent: int) -> int:
    """More than 128: the next multiple of 128; more than 32: of 32."""
    step = COARSE if extent > COARSE else FINE if extent > FINE else 1
    return -(-extent // step) * step


def dealt(rows: int, columns: int, seed: TileSeed) -> SeedShares:
    """`rows` and `columns` count the unit tiles of D. What divides neither side is left over."""
    groups = 1 << -(-_log2(seed.sub_groups) // 2)
    tiles = 1 << _log2(seed.tiles) // 2
    if rows % (groups * tiles) == 0:
        made = _first((groups, tiles), columns, seed)
    elif columns % (groups * tiles) == 0:
        made = _turned(_first((groups, tiles), rows, seed))
    else:
        own = math.gcd(columns, seed.sub_groups)
        made = _turned(_first((own, math.gcd(columns // own, seed.tiles)), rows, seed))
    if made.is_least and seed.sub_groups * seed.tiles > 1:
        made = _by_least(rows, columns, groups, tiles, seed)
    return _with_surplus(made, rows, columns, seed)


def _first(first: tuple[int, int], other: int, seed: TileSeed) -> SeedShares:
    """M has `first` sub-groups and tiles; of what is left, N has what divides it."""
    groups = math.gcd(other, seed.sub_groups // first[0])
    return SeedShares((first[0], groups), (first[1], math.gcd(other // groups, seed.tiles // first[1])))


def _turned(made: SeedShares) -> SeedShares:
    return SeedShares(made.groups[::-1], made.tiles[::-1])


def _by_least(rows: int, columns: int, groups: int, tiles: int, seed: TileSeed) -> SeedShares:
    """Powers of two that are no more than there are, where the counts have no divisor in common with the seed."""
    m_groups = min(groups, 1 << _log2(rows))
    n_groups = min(seed.sub_groups // m_groups, 1 << _log2(columns))
    m_tiles = min(tiles, 1 << _log2(max(1, rows // m_groups)))
    return SeedShares(
        (m_groups, n_groups), (m_tiles, min(seed.tiles // m_tiles, 1 << _log2(max(1, columns // n_groups))))
    )


def _with_surplus(made: SeedShares, rows: int, columns: int, seed: TileSeed) -> SeedShares:
    """Left-over tiles to a side that is much longer than the other."""
    left = seed.tiles // (made.tiles[0] * made.tiles[1])
    if max(rows, columns) < LONG * min(rows, columns) or seed.tiles < MANY_TILES or left < 2:
        return made
    long = int(columns > rows)
    beyond = (rows, columns)[long] // (made.groups[long] * made.tiles[long])
    more = math.gcd(max(1, beyond), left)
    tiles = list(made.tiles)
    tiles[long] *= more
    return replace(made, tiles=(tiles[0], tiles[1]))


def tile_of(seed: TileSeed, situation: Situation, is_padded: bool) -> TileWish:
    """The tile that a seed makes of a product; `is_padded` rounds M and N up first (the step `alignment`)."""
    unit, product = situation.unit, situation.product
    m, n = (padded(product.m), padded(product.n)) if is_padded else (product.m, product.n)
    made = dealt(-(-m // unit.m), -(-n // unit.n), seed)
    wanted = seed.tiles_along_k(situation.element_bytes, unit.k)
    k_tiles = math.gcd(-(-product.k // unit.k), wanted)
    return TileWish(
        m=unit.m * made.groups[0] * made.tiles[0],
        n=unit.n * made.groups[1] * made.tiles[1],
        depth=unit.k * k_tiles,
        sub_groups=made.groups,
    )


def _log2(count: int) -> int:
    """Rounded down."""
    return max(1, count).bit_length() - 1
