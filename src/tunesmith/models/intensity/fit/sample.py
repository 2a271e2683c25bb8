"""The sample to which a heuristic is fitted: tuned products with their groups, winners and times."""

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
"""The features by which a tree may split: every metric, and each size."""


@dataclass(frozen=True)
class TunedSample:
    """Products with the configuration that was fastest on each.

    Products of one group are held out together, because they are so much alike that one would predict the others.
    `areas` are the elements of D in the winners' macro tiles, None if tiles are unknown. If times are known, `seconds`
    has a row for each product and a column for each of `candidates`, NaN where a candidate did not run.
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
        """Log regret if times are known; otherwise the squared error of ln(tile area)."""
        if self.seconds is not None:
            return LogRegret.of_times(self.seconds)
        if self.areas is None:
            raise ValueError("neither times nor tiles of these products are known")
        return SquaredError(np.log(self.areas))

    def values(self, feature: str) -> Floats:
        """One of `FEATURES` for each product."""
        measure = FEATURES[feature]
        return np.array([measure(product, self.ridge, self.units) for product in self.products])

    def choice(self, rows: Sequence[int], decision: float) -> Configuration:
        """The configuration of a bucket with these rows: the candidate with index `decision` if times are known,
        otherwise the most frequent winner."""
        if self.seconds is not None:
            return self.candidates[int(decision)]
        return Counter(self.winners[row] for row in rows).most_common(1)[0][0]

    def tile_area(self, rows: Sequence[int]) -> float | None:
        """Geometric mean of the winners' tile areas, in elements; None if tiles are unknown."""
        if self.areas is None:
            return None
        return float(np.exp(np.log(self.areas[list(rows)]).mean()))
