"""What a bucket costs that has one decision for all its products: squared error of a response, or log regret.

Both are sums over products, so a bucket's cost follows from the difference of two running sums. That makes the search
for cut points exact and fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEVER_RAN = 1e6
"""Log regret of a configuration that did not run on a product. It is finite, so that running sums stay numbers, and so
large that a fit takes any other configuration."""
MISSED = math.log(1000)
"""The same in a score: as if it were a thousand times as slow. A mean of scores stays readable."""


class SummedLoss(Protocol):
    """A loss over a fixed list of products, as a search for cut points needs it. A decision is a number: a response, or
    a candidate's index."""

    @property
    def count(self) -> int:
        """Products."""

    def sums(self, weights: Floats) -> Floats:
        """Statistics of each product (a row each) that add up over the products of a bucket."""

    def cost(self, sums: Floats) -> Floats:
        """The least loss of buckets with such sums, one bucket a row."""

    def decisions(self, sums: Floats) -> Floats:
        """The decision of least loss for each bucket."""


class Loss(SummedLoss, Protocol):
    """The same with the loss of single products, for a score."""

    def of_products(self, decisions: Floats) -> Floats:
        """Each product's loss under the decision for it; `decisions` has one a product."""


@dataclass(frozen=True)
class SquaredError:
    """Of a response that only winners tell, such as the logarithm of their tile's area. A decision is a response."""

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
        """Subtracted before squares are summed: differences of large sums would lose digits."""
        return float(self.responses.mean())


@dataclass(frozen=True)
class LogRegret:
    """ln(time of a candidate / best time), a row a product and a column a candidate. A decision is a column."""

    regrets: Floats

    @staticmethod
    def of_times(seconds: Floats) -> LogRegret:
        """From times; NaN stands where a candidate did not run. Raises ValueError for a product on which none ran."""
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
