"""Products that were tuned, as what a fit needs: numbers, groups, winners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tunesmith.models.intensity.metrics import METRICS, Product
from tunesmith.records import Configuration

from .losses import Floats, LogRegret, Loss, SquaredError

FEATURES: Mapping[str, Callable[[Product, float, int], float]] = MappingProxyType(
    {
        **METRICS,
        "m": lambda product, ridge, units: float(product.m),
        "n": lambda product, ridge, units: float(product.n),
        "k": lambda product, ridge, units: float(product.k),
    }
)
"""What a tree may split by: every metric, and each size alone."""


@dataclass(frozen=True)
class TunedSample:
    """Products with the configuration that was fastest on each.

    Products of one group are held out together: they are so much alike that one would give the other away. `areas` are
    the elements of D in the winner's macro tile, None where tiles are not known. With a matrix of times, `candidates`
    names its columns and `seconds` has them, a row a product, NaN where a candidate did not run.
    """

    products: tuple[Product, ...]
    groups: tuple[str, ...]
    winners: tuple[Configuration, ...]
    areas: Floats | None
    ridge: float
    units: int
    candidates: tuple[Configuration, ...] = ()
    seconds: Floats | None = None

    @property
    def loss(self) -> Loss:
        """Log regret where times are known; else squared error of ln(tile area)."""
        if self.seconds is not None:
            return LogRegret.of_times(self.seconds)
        if self.areas is None:
            raise ValueError("neither times nor tiles of these products are known")
        return SquaredError(np.log(self.areas))

    def values(self, feature: str) -> Floats:
        """A metric or another of `FEATURES`, one a product."""
        measure = FEATURES[feature]
        return np.array([measure(product, self.ridge, self.units) for product in self.products])

    def choice(self, rows: Sequence[int], decision: float) -> Configuration:
        """A bucket's configuration: the candidate decided on, or the winner that its products have most often."""
        if self.seconds is not None:
            return self.candidates[int(decision)]
        return Counter(self.winners[row] for row in rows).most_common(1)[0][0]

    def tile_area(self, rows: Sequence[int]) -> float | None:
        """Geometric mean of the winners' tile areas, in elements; None where tiles are not known."""
        if self.areas is None:
            return None
        return float(np.exp(np.log(self.areas[list(rows)]).mean()))
