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

Floats = NDArray[np.float64]

PLAN_FEATURES = (*(f"library's {field.name}" for field in fields(LibraryPlan)), "library's log work-groups")
"""Features of a plan, in the order of `plan_features`. Workspace and waves are binary logarithms."""
_numbers_of = attrgetter(*(field.name for field in fields(LibraryPlan)))
NO_PLAN = np.full(len(PLAN_FEATURES), math.nan)
LEAST_WAVES = 2.0**-20


def plan_features(plan: LibraryPlan | None) -> Floats:
    """The values of PLAN_FEATURES, all NaN without a plan. The work-groups are in waves, and of one part of K."""
    if plan is None:
        return NO_PLAN
    *names, workspace, waves = _numbers_of(plan)
    log_waves = math.log2(max(waves, LEAST_WAVES))
    return np.array([*names, math.log2(workspace + 1), log_waves, log_waves - math.log2(max(plan.parts, 1))])


def with_plans(rows: Floats, plans: Floats) -> Floats:
    """Rows of features of the library with those of its plans behind: a row of `plans` for each, or one for all."""
    return np.hstack([rows, np.broadcast_to(plans, (len(rows), len(PLAN_FEATURES)))])
