"""The loss of a bucket with one decision for all its products: squared error of a response, or log regret.

Both losses are sums over products, so a bucket's loss follows from the difference of two running sums. This makes the
search for cut points exact and fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEVER_RAN = 1e6
"""Log regret, in a fit, of a configuration that did not run on a product. It is finite, so that running sums stay
numbers, and so large that a fit prefers any other configuration."""
MISSED = math.log(1000)
"""Log regret, in a score, of a configuration that did not run: as if it were a thousand times slower, so that a mean of
scores stays readable."""


class SummedLoss(Protocol):
    """A loss over a fixed list of products, for the search for cut points. A decision is a number: a response, or a
    candidate's index."""

    @property
    def count(self) -> int:
        """The number of products."""

    def sums(self, weights: Floats) -> Floats:
        """Statistics that add up over the products of a bucket: a row for each product."""

    def cost(self, sums: Floats) -> Floats:
        """The least loss of each bucket; `sums` has a row for each bucket."""

    def decisions(self, sums: Floats) -> Floats:
        """The decision of least loss for each bucket."""


class Loss(SummedLoss, Protocol):
    """A summed loss that also gives the loss of single products, for a score."""

    def of_products(self, decisions: Floats) -> Floats:
        """The loss of each product; `decisions` has a decision for each product."""


@dataclass(frozen=True)
class SquaredError:
    """The squared error of a response that is known only for winners, such as the logarithm of their tile area. A
    decision is a response."""

    responses: Floats

    @property
    def count(self) -> int:
        return len(self.responses)

    def sums(self, weights: Floats) -> Floats:
        centred = self.responses - self._centre
        return np.stack([weights, weights * centred, weights * centred**2], axis=1)

    def cost(self, sums: Floats) -> Floats:
        weight, first, second = sums.T
        return np.asarray(np.maximum(second - first**2 / np.where(weight > 0, weight, 1.0), 0.0))

    def decisions(self, sums: Floats) -> Floats:
        weight, first, _ = sums.T
        return np.asarray(self._centre + first / np.where(weight > 0, weight, 1.0))

    def of_products(self, decisions: Floats) -> Floats:
        return np.asarray((self.responses - decisions) ** 2)

    @property
    def _centre(self) -> float:
        """The mean, which is subtracted before squares are summed: differences of large sums would lose digits."""
        return float(self.responses.mean())


@dataclass(frozen=True)
class LogRegret:
    """ln(time of a candidate / best time): a row for each product, a column for each candidate. A decision is the index
    of a column."""

    regrets: Floats

    @staticmethod
    def of_times(seconds: Floats) -> LogRegret:
        """From times, NaN where a candidate did not run. Raises ValueError for a product on which no candidate ran."""
        ran = np.isfinite(seconds) & (seconds > 0)
        if not ran.any(axis=1).all():
            raise ValueError("no candidate ran on one of the products")
        logs = np.log(np.where(ran, seconds, 1.0))
        best = np.where(ran, logs, np.inf).min(axis=1, keepdims=True)
        return LogRegret(np.where(ran, logs - best, NEVER_RAN))

    @property
    def count(self) -> int:
        return len(self.regrets)

    def sums(self, weights: Floats) -> Floats:
        return np.asarray(weights[:, None] * self.regrets)

    def cost(self, sums: Floats) -> Floats:
        return np.asarray(np.maximum(sums.min(axis=1), 0.0))

    def decisions(self, sums: Floats) -> Floats:
        return np.asarray(sums.argmin(axis=1), dtype=np.float64)

    def of_products(self, decisions: Floats) -> Floats:
        return np.asarray(np.minimum(self.regrets[np.arange(self.count), decisions.astype(int)], MISSED))
