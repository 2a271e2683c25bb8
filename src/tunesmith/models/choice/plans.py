"""What the vendor's library says of a product before it computes it, as numbers.

The library's time is hard to expect from sizes alone, since its own choice jumps: neighbours may differ by a factor of
two. What it says that it would do explains most of that.
"""

from __future__ import annotations

import math
from dataclasses import fields
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import LibraryPlan

from .features import PRODUCT_FEATURES
from .library_tiles import sides_of

Floats = NDArray[np.float64]

OF_PLAN = (*(f"library's {field.name}" for field in fields(LibraryPlan)), "library's log work-groups")
"""Features of a plan alone, in the order of `plan_features`. Workspace and waves are binary logarithms."""
OF_PRODUCT = (
    "library's wave share",
    "library's log k",
    "library's log elements",
    "library's arithmetic",
    "library's iterations",
    "library's log rounds",
)
"""Features of a plan for a product, in the order of `_of_product`."""
OF_TILE = (
    "library's log tile m",
    "library's log tile n",
    "library's log tiles",
    "library's edge m",
    "library's edge n",
    "library's traffic",
)
"""Features of a plan's tile on a product, in the order of `_of_tile`; of 1 x 1 if the library does not tell it."""
PLAN_FEATURES = (*OF_PLAN, *OF_PRODUCT, *OF_TILE)
"""What `with_plans` appends. Those that came later are behind, so that older trees ask for none of them."""
NO_PLAN = np.full(len(OF_PLAN), math.nan)
LEAST_WAVES = 2.0**-20
EXACT = 1e-9
MOST_PARTS = 1 << 16
"""More parts of K than this are cuBLAS's word for as many as it likes. OF_PRODUCT, which is older, has their number."""
_numbers_of = attrgetter(*(field.name for field in fields(LibraryPlan)))
_TILE, _PARTS, _WAVES, _GROUPS = (
    OF_PLAN.index(f"library's {name}") for name in ("tile", "parts", "waves", "log work-groups")
)
_M, _N, _K, _BATCH, _FLOOR = (PRODUCT_FEATURES.index(f"log {name}") for name in ("m", "n", "k", "batch", "floor"))


def plan_features(plan: LibraryPlan | None) -> Floats:
    """The values of OF_PLAN, all NaN without a plan. The work-groups are in waves, and of one part of K."""
    if plan is None:
        return NO_PLAN
    *names, workspace, waves = _numbers_of(plan)
    log_waves = math.log2(max(waves, LEAST_WAVES))
    return np.array([*names, math.log2(workspace + 1), log_waves, log_waves - math.log2(max(plan.parts, 1))])


def with_plans(rows: Floats, plans: Floats) -> Floats:
    """Rows of features of the library with those of its plans behind (PLAN_FEATURES). `plans` has the values of
    OF_PLAN: a row for each, or one for all."""
    of_plan = np.broadcast_to(plans, (len(rows), len(OF_PLAN)))
    return np.hstack([rows, of_plan, _of_product(rows, of_plan), _of_tile(rows, of_plan)])


def _of_product(rows: Floats, plans: Floats) -> Floats:
    """The values of OF_PRODUCT: how full the last round of work-groups is; the K of a part, and the elements of a
    work-group in units that depend on the device; the multiply-adds and the K that a compute unit has in turn, over the
    product's floor; and the rounds. All but the first are binary logarithms."""
    waves, parts, rounds = np.exp2(plans[:, _WAVES]), np.maximum(plans[:, _PARTS], 1), _rounds(plans)
    log_k, log_rounds = rows[:, _K] - np.log2(parts), np.log2(rounds)
    log_elements = rows[:, _M] + rows[:, _N] + rows[:, _BATCH] - plans[:, _GROUPS]
    in_turn = log_rounds + log_k - rows[:, _FLOOR]
    return np.column_stack([waves / rounds, log_k, log_elements, in_turn + log_elements, in_turn, log_rounds])


def _of_tile(rows: Floats, plans: Floats) -> Floats:
    """The values of OF_TILE: the tile's sides, and how many tiles there are; how full the last ones are along each
    side; and the elements of both operands that a compute unit fetches in turn, over the product's floor. All but the
    two in the middle are binary logarithms."""
    sides = sides_of(plans[:, _TILE])
    extents = np.rint(np.exp2(rows[:, (_M, _N)]))
    across = np.ceil(extents / sides)
    parts = np.where(plans[:, _PARTS] > MOST_PARTS, 1, np.maximum(plans[:, _PARTS], 1))
    traffic = np.log2(_rounds(plans) * sides.sum(axis=1)) + rows[:, _K] - np.log2(parts) - rows[:, _FLOOR]
    tiles = np.log2(across.prod(axis=1)) + rows[:, _BATCH]
    return np.column_stack([*np.log2(sides).T, tiles, *(extents / (across * sides)).T, traffic])


def _rounds(plans: Floats) -> Floats:
    """Waves, as whole numbers. A logarithm and back may be a little above one."""
    rounds: Floats = np.ceil(np.exp2(plans[:, _WAVES]) * (1 - EXACT))
    return rounds
