"""Steps that change a seed before its tiles are distributed over M and N. Each step can be left out.

Source: IREE's strategies (pull requests 21546, 21691, 21826, 23652), as facts. Each step states its formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tunesmith.models.intensity.published import Bucket

from .seeds import BOOSTED_TILES, LEAST_UTILISATION, TileSeed
from .situation import PolicyInput

SeedStep = Callable[[TileSeed, PolicyInput, Bucket], TileSeed]

LEAST_BUDGET = 32
"""A seed with fewer unit tiles in a work-group is small, and the same in both strategies."""
MANY_SUB_GROUPS, FEW_SUB_GROUPS = 8, 4


def work_groups(seed: TileSeed, situation: PolicyInput) -> float:
    """M N / (tiles x unit m x unit n x sub-groups), for all matrices of the batch."""
    unit, product = situation.unit, situation.product
    return product.mn * product.batch / (seed.tiles * unit.m * unit.n * seed.sub_groups)


def utilisation(seed: TileSeed, situation: PolicyInput) -> float:
    """Work-groups divided by the compute units of all their waves. The last wave may not be full."""
    groups = work_groups(seed, situation)
    return groups / (max(1, math.ceil(groups / situation.units)) * situation.units)


def subgroup_favor(seed: TileSeed, situation: PolicyInput, bucket: Bucket) -> TileSeed:
    """The same work-group from more sub-groups with fewer tiles each, which hides scattered loads: 8 x {4, 8}."""
    return _with_sub_groups(seed, MANY_SUB_GROUPS)


def tile_favor(seed: TileSeed, situation: PolicyInput, bucket: Bucket) -> TileSeed:
    """The same work-group from fewer sub-groups with more tiles each, which reuses registers: 4 x {8, 16}."""
    return _with_sub_groups(seed, FEW_SUB_GROUPS)


def _with_sub_groups(seed: TileSeed, count: int) -> TileSeed:
    budget = seed.sub_groups * seed.tiles
    return replace(seed, sub_groups=count, tiles=budget // count) if budget >= LEAST_BUDGET else seed


def boost(seed: TileSeed, situation: PolicyInput, bucket: Bucket) -> TileSeed:
    """More tiles in a sub-group, for a large product whose K is not its longest side, if two waves of work-groups
    remain.

    Very large products are unchanged: for them, the step made programs that spilled registers (issue 23876).
    """
    product, boosted = situation.product, replace(seed, tiles=max(seed.tiles, BOOSTED_TILES))
    applies = bucket is Bucket.LARGE and product.k <= max(product.m, product.n)
    return boosted if applies and work_groups(boosted, situation) >= 2 * situation.units else seed


def workgroup_cap(seed: TileSeed, situation: PolicyInput, bucket: Bucket) -> TileSeed:
    """Tiles halved until each compute unit has a work-group, or one tile is left. Small products are unchanged."""
    while bucket is not Bucket.SMALL and seed.tiles > 1 and work_groups(seed, situation) < situation.units:
        seed = replace(seed, tiles=seed.tiles // 2)
    return seed


def utilisation_guard(seed: TileSeed, situation: PolicyInput, bucket: Bucket) -> TileSeed:
    """Tiles halved once if the waves would be less than half full."""
    if seed.tiles > 1 and utilisation(seed, situation) < LEAST_UTILISATION:
        return replace(seed, tiles=seed.tiles // 2)
    return seed


SEED_STEPS: dict[str, SeedStep] = {
    "subgroup-favor": subgroup_favor,
    "tile-favor": tile_favor,
    "boost": boost,
    "workgroup-cap": workgroup_cap,
    "utilisation-guard": utilisation_guard,
}
"""In the order in which they are applied. If both `subgroup-favor` and `tile-favor` are on, the latter decides."""
