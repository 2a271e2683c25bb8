"""The fewest solutions that are good enough everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SECONDS = 20.0
"""Limit for the exact solution; sets of a few hundred sizes and solutions take well under a second."""


def cover(times: NDArray[np.float64], tolerance: float) -> list[int]:
    """Columns such that each row has one within `1 + tolerance` of its fastest: as few as can be, then the fastest.

    `times` in seconds, a row a size and a column a solution, infinite where a solution does not run; every row has a
    finite time. A set cover by integer programming. Among smallest sets, small mean losses win. Where the limit of
    time runs out the winners of all rows are kept.
    """
    # Imported here since SciPy takes longer to load than a command that needs no cover takes to run.
    from scipy.optimize import Bounds, LinearConstraint, milp

    losses = np.log(times / times.min(axis=1, keepdims=True))
    enough = losses <= np.log1p(tolerance)
    # Below 1 over the number of columns in sum, so that speed never buys an extra solution.
    mean = np.minimum(losses, 1.0).mean(axis=0)
    prices = 1.0 + 0.5 * mean / times.shape[1]
    found = milp(
        prices,
        constraints=LinearConstraint(enough.astype(float), lb=1.0),
        integrality=np.ones(times.shape[1]),
        bounds=Bounds(0, 1),
        options={"time_limit": SECONDS},
    )
    chosen = found.x if found.x is not None else np.isin(np.arange(times.shape[1]), times.argmin(axis=1))
    return [int(index) for index in np.flatnonzero(np.asarray(chosen) > 0.5)]
