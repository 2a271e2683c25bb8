"""The smallest set of solutions that has a good enough one for every size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SECONDS = 20.0
"""Time limit for the exact solution. A few hundred sizes and solutions take well under a second."""


def cover(times: NDArray[np.float64], tolerance: float) -> list[int]:
    """A smallest set of columns that has, for each row, a time within `1 + tolerance` of the row's fastest.

    `times` are seconds, a row for each size and a column for each solution, infinite where a solution does not run.
    Every row must have a finite time. The set cover is solved by integer programming; among the smallest sets, small
    mean losses win. If the time limit runs out, the fastest columns of all rows are returned.
    """
    # Imported here since SciPy takes longer to load than a command that needs no cover takes to run.
    from scipy.optimize import LinearConstraint, milp

    fastest = times.min(axis=1, keepdims=True)
    is_good_enough = times <= fastest * (1.0 + tolerance)
    # The terms for speed add up to less than 1 unless every column is taken: speed never buys an extra solution.
    mean = np.minimum(np.log(times / fastest), 1.0).mean(axis=0)
    prices = 1.0 + mean / times.shape[1]
    result = milp(
        prices,
        constraints=LinearConstraint(is_good_enough.astype(float), lb=1.0),
        integrality=np.ones(times.shape[1]),
        options={"time_limit": SECONDS},
    )
    chosen = result.x if result.x is not None else np.isin(np.arange(times.shape[1]), times.argmin(axis=1))
    return [int(index) for index in np.flatnonzero(np.rint(np.asarray(chosen, dtype=float)))]
