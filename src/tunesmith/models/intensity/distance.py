"""The distance between two solutions, for taking the time of one as an estimate for the other.

The effect of a parameter on the time decides its weight. Macro tile and parts of K decide how often operands are
fetched and how many work-groups there are: each doubling counts 1. Depth and unrolling only change how often a
work-group waits: a doubling counts a quarter. A work-item's share of the same macro tile counts half. Loads of single
elements take several times as long as wide loads, so another load path counts 3. How D is stored counts little.
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
"""The weight of a doubling, or of a different word. A parameter that is not in the table has weight 1."""
CLUSTER_PARTS = "ClusterParts"
"""The derived parameter that is the third number of ClusterShape, which may be missing there."""
BY_TILE = ("WarpGroups", "InstructionColumns", "RowsAlong")
"""Parameters that only define the macro tile; they are compared as the macro tile."""


@dataclass(frozen=True, slots=True)
class SolutionFeatures:
    """The parameters that `distance` compares, including the macro tile if the family has one."""

    values: Mapping[str, Value]

    @property
    def tile(self) -> Value | None:
        """Rows and columns of the macro tile; None for a family without tiles."""
        return self.values.get("MacroTile")


@lru_cache(maxsize=65536)
def features(solution: Solution) -> SolutionFeatures:
    """The parameters of a solution that `distance` compares."""
    config = solution.configuration
    derived = _derived(solution.kernel, config)
    tile = derived.get("MacroTile") or config.get("MacroTile")
    if tile is None:
        return SolutionFeatures(dict(config))
    others = {name: value for name, value in config.items() if name not in BY_TILE}
    match config.get("ClusterShape"), derived.get(CLUSTER_PARTS):
        case (m, n, *_), int(parts):
            others |= {"ClusterShape": (m, n), CLUSTER_PARTS: parts}
    return SolutionFeatures({**others, "MacroTile": tile})


def distance(first: Solution, second: Solution) -> float:
    """The distance of two solutions of one kernel: the weighted number of doublings between numbers, and the weight of
    every other difference."""
    a, b = features(first).values, features(second).values
    return math.fsum(WEIGHTS.get(name, 1.0) * _difference(a.get(name), b.get(name)) for name in sorted({*a, *b}))


def same_tile(first: Solution, second: Solution) -> bool:
    """Whether two solutions have the same macro tile and the same numbers of parts of K."""
    a, b = features(first), features(second)
    return a.tile == b.tile and all(
        a.values.get(name) == b.values.get(name) for name in ("GlobalSplitU", CLUSTER_PARTS)
    )


def _derived(kernel: str, config: Configuration) -> Mapping[str, Value]:
    """What follows from the configuration; nothing for an unknown kernel, or if the configuration lacks parameters."""
    try:
        return KERNELS[kernel].derived(config)
    except LookupError:
        return {}


def _difference(first: Value | None, second: Value | None) -> float:
    if first == second:
        return 0.0
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return math.fsum(_difference(a, b) for a, b in zip(first, second, strict=True))
    if _is_positive(first) and _is_positive(second):
        return abs(math.log2(first) - math.log2(second))  # type: ignore[arg-type]  # numbers, as checked above
    return 1.0


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
