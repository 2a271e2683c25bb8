"""Fits the costs to measured runs: non-negative, robust against single runs, and each with a confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .costs import COSTS, counts
from .memory_demand import Floats
from .records import DeviceCapacity
from .runs import StreamKRun

RESAMPLES = 200
ROUNDS = 10
SOLVER_ROUNDS = 1000
"""For each least squares of nine costs: a bound that none comes near."""
HUBER = 1.345
"""Residuals beyond so many standard deviations count linearly, not squared: 95 % efficient for normal errors. Source:
P. J. Huber, Robust Statistics."""
NORMAL = 1.4826
"""The standard deviation of normal errors, as a multiple of their median absolute deviation."""
LEAST_SCATTER = 0.002
"""Relative. No timing is steadier, so a fit must not weigh runs as if one were."""


@dataclass(frozen=True, slots=True)
class FittedCost:
    """A cost in seconds as fitted, with its 95 % interval from `low` to `high`; `adjusted` is set by a person and
    counts instead."""

    fitted: float
    low: float
    high: float
    adjusted: float | None = None

    @property
    def value(self) -> float:
        return self.fitted if self.adjusted is None else self.adjusted


def fit(
    runs: Sequence[StreamKRun], room: DeviceCapacity, random: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[tuple[FittedCost, ...], Floats, float]:
    """Costs in the order of COSTS, their covariance, and the relative standard deviation of a run around them.

    The method is non-negative least squares of the relative error with iterated weights (Huber). Intervals come from a
    bootstrap that draws from the fit's residuals, so that every resample has all runs and can tell all costs apart. A
    cost that occurs in no run stays zero. Raises ValueError for fewer runs than costs, or a run whose time is not
    positive.
    """
    if len(runs) < len(COSTS) or min(run.seconds for run in runs) <= 0:
        raise ValueError(f"{len(COSTS)} costs cannot be fitted to {len(runs)} runs")
    features = np.array([counts(run.work, run.choice, room) for run in runs])
    seconds = np.array([run.seconds for run in runs])
    costs = _robust(features, seconds)
    expected = features @ costs
    # The residuals of a fit are smaller than the errors, since the fit has adapted to them.
    freedom = max(1, len(runs) - int(np.count_nonzero(costs)))
    residuals = (seconds / expected - 1) * (len(runs) / freedom) ** 0.5
    drawn = residuals - np.median(residuals)
    factors: Floats = 1.0 + np.clip(random.choice(drawn, (resamples, len(runs))), -0.9, None)
    refitted = np.array([_robust(features, expected * factor) for factor in factors])
    low, high = np.quantile(refitted, (0.025, 0.975), axis=0)
    rows = np.column_stack((costs, np.minimum(low, costs), np.maximum(high, costs))).tolist()
    return tuple(FittedCost(*row) for row in rows), np.cov(refitted, rowvar=False), _scatter(residuals)


def _robust(features: Floats, seconds: Floats) -> Floats:
    from scipy.optimize import nnls

    relative = features / seconds[:, None]
    norms = np.linalg.norm(relative, axis=0)
    lengths = np.where(norms > 0, norms, 1.0)
    scaled = relative / lengths
    weights = np.ones(len(seconds))
    costs = np.zeros(features.shape[1])
    for _ in range(ROUNDS):
        solution, _ = nnls(scaled * weights[:, None], weights, maxiter=SOLVER_ROUNDS)
        change = np.abs(solution - costs).max()
        costs = solution
        residuals = np.abs(scaled @ costs - 1)
        weights = np.sqrt(np.minimum(1.0, HUBER * _scatter(residuals) / np.maximum(residuals, 1e-12)))
        if change <= 1e-6 * costs.max():
            break
    # A cost that occurs in no run has a column of zeros, and is zero.
    return np.asarray(costs / lengths)


def _scatter(residuals: Floats) -> float:
    return max(float(NORMAL * np.median(np.abs(residuals))), LEAST_SCATTER)
