"""The records of a decision about one generator on one architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tunesmith.records import LaunchShape, Rejection

from .matrix import SpeedMatrix, SpeedRatio

Weights = Mapping[tuple[str, str, str], float]
"""Weights by generator ("": every generator), distribution and value type. A pair that is not named has weight 0."""


class RandomObjective(StrEnum):
    """The criterion by which the best launch shape is best, over all distributions and types."""

    COMPAT = "compat"
    GEOMEAN = "geomean"
    WORST = "worst"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Scored:
    """A shape with its score: the objective's value, as a multiple of the default's speed."""

    shape: LaunchShape
    score: float


@dataclass(frozen=True, slots=True)
class ShapeOverride:
    """A shape for one distribution and type, and its gain over the common shape (a ratio of speeds)."""

    distribution: str
    value_type: str
    shape: LaunchShape
    gain: float


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about a choice. `reason` is a constant, `detail` a sentence; `look`: a person must decide."""

    reason: str
    detail: str
    look: bool = True


@dataclass(frozen=True)
class RandomDecision:
    """The choice for one generator on one architecture, with the facts by which a maintainer can check it.

    `ranking` has the eligible shapes, best first; `ties` the shapes that cannot be told from the best. `ratios` are the
    chosen shape's ratios, one for each case; `regressions` are those below the default beyond noise. `safe` is the best
    shape without regressions (None: only the default has none). `overrides` are shapes for single distributions and
    types, if the output does not depend on the shape; `gain` is their gain over all cases. `ineligible` shapes were
    measured but may not be chosen. `cautions` are reasons to trust the times less; files written from the decision
    repeat them.
    """

    objective: RandomObjective
    matrix: SpeedMatrix
    chosen: LaunchShape
    score: float
    ranking: tuple[Scored, ...]
    ties: tuple[LaunchShape, ...]
    ratios: tuple[SpeedRatio, ...]
    regressions: tuple[SpeedRatio, ...]
    safe: Scored | None
    overrides: tuple[ShapeOverride, ...] = ()
    gain: float = 1.0
    ineligible: tuple[tuple[LaunchShape, Rejection], ...] = ()
    remarks: tuple[Remark, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def generator(self) -> str:
        return self.matrix.generator

    @property
    def architecture(self) -> str:
        return self.matrix.architecture

    @property
    def worst(self) -> SpeedRatio | None:
        """The chosen shape's smallest ratio to the default."""
        return min(self.ratios, key=lambda ratio: ratio.ratio, default=None)
