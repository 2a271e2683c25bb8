"""What the selection says about a generator on an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tunesmith.records import LaunchShape, Rejection

from .matrix import SpeedMatrix, SpeedRatio

Weights = Mapping[tuple[str, str, str], float]
"""By generator (empty: every one), distribution and value type; a pair that is not named has no weight."""


class RandomObjective(StrEnum):
    """What the best launch shape is best in, over all distributions and types."""

    COMPAT = "compat"
    GEOMEAN = "geomean"
    WORST = "worst"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Scored:
    """A shape with the objective's value, in times the default's speed."""

    shape: LaunchShape
    score: float


@dataclass(frozen=True, slots=True)
class ShapeOverride:
    """A shape for one distribution and type, and what it gains over the one for all (ratio of speeds)."""

    distribution: str
    value_type: str
    shape: LaunchShape
    gain: float


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to know about a choice: `reason` is a constant, `detail` a sentence; `look` if a person must decide."""

    reason: str
    detail: str
    look: bool = True


@dataclass(frozen=True)
class RandomDecision:
    """The choice for one generator on one architecture, with what a maintainer needs to agree or not.

    `ranking` has the eligible shapes, best first; `ties` those that cannot be told from the best. `ratios` are the
    chosen shape's, a case each, `regressions` those of them below the default beyond noise. `safe` is the best shape
    without any (None: there is none but the default). `overrides` apply where the output does not depend on the
    shape, and `gain` is what they add over all cases. `ineligible` shapes were measured and may not be chosen.
    `cautions` make the times less to be trusted; what is written of the choice tells them.
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
        """The chosen shape's slowest case against the default."""
        return min(self.ratios, key=lambda ratio: ratio.ratio, default=None)
