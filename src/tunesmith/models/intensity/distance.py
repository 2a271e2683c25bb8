"""How far two solutions are apart, where the time of the one stands in for that of the other.

What a parameter does to the time decides its weight. Macro tile and parts of K decide how often operands are fetched
and how many work-groups there are: each doubling counts 1. Depth and unrolling only change how often a work-group
waits: a doubling counts a quarter. A work-item's share of the same macro tile counts half. Loads of single elements
take several times as long as wide ones, so another way to load counts 3; how D is stored counts little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tunesmith.kernels import KERNELS
from tunesmith.records import Configuration, Solution, Value

WEIGHTS: Mapping[str, float] = {
    "MacroTile": 1.0,
    "GlobalSplitU": 1.0,
    "DepthU": 0.25,
    "LoopUnroll": 0.25,
    "Stages": 0.25,
    "NumStages": 0.25,
    "CacheLine": 0.25,
    "WorkGroup": 0.5,
    "ThreadTile": 0.5,
    "WorkItem": 0.5,
    "NumWarps": 0.5,
    "TopTile": 0.25,
    "LoadPath": 3.0,
    "StorePath": 0.3,
    "Schedule": 0.3,
}
"""Of a doubling, or of another word; a parameter that is not here counts 1."""
BY_TILE = ("WarpGroups", "InstructionColumns", "RowsAlong")
"""Parameters that do nothing but make the macro tile: they count as that."""


@dataclass(frozen=True, slots=True)
class SolutionFeatures:
    """The parameters that count, with the macro tile among them where the family has one."""

    values: Mapping[str, Value]

    @property
    def tile(self) -> Value | None:
        """Rows and columns; None of a family without tiles."""
        return self.values.get("MacroTile")


@lru_cache(maxsize=65536)
def features(solution: Solution) -> SolutionFeatures:
    """What `distance` compares."""
    config = solution.configuration
    tile = _macro_tile(solution.kernel, config)
    if tile is None:
        return SolutionFeatures(dict(config))
    own = {name: value for name, value in config.items() if name not in BY_TILE}
    return SolutionFeatures({**own, "MacroTile": tile})


def distance(first: Solution, second: Solution) -> float:
    """Between two solutions of one kernel: weighted doublings between numbers, a weight for each other difference."""
    one, other = features(first).values, features(second).values
    return math.fsum(WEIGHTS.get(name, 1.0) * _apart(one.get(name), other.get(name)) for name in sorted({*one, *other}))


def same_tile(first: Solution, second: Solution) -> bool:
    """Whether two solutions have one macro tile and as many parts of K."""
    one, other = features(first), features(second)
    return one.tile == other.tile and one.values.get("GlobalSplitU") == other.values.get("GlobalSplitU")


def _macro_tile(kernel: str, config: Configuration) -> Value | None:
    """None of a kernel that is not here, and of a configuration that lacks what its tile is made of."""
    try:
        return KERNELS[kernel].derived(config).get("MacroTile") or config.get("MacroTile")
    except LookupError:
        return config.get("MacroTile")


def _apart(first: Value | None, second: Value | None) -> float:
    if first == second:
        return 0.0
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return math.fsum(_apart(a, b) for a, b in zip(first, second, strict=True))
    if _is_positive(first) and _is_positive(second):
        return abs(math.log2(first) - math.log2(second))  # type: ignore[arg-type]  # numbers, as asked above
    return 1.0


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
