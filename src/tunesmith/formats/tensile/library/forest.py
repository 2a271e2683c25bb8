"""Decision trees of a library logic: regions of problems, features, and the answer of a tree.

Source: ROCm/Tensile, `DecisionTree.hpp`, `MLFeatures.cpp` and `ContractionProblemPredicates.hpp`. Features and
thresholds are numbers of single precision there, so that they are rounded here.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping

from .contraction import SizedContraction
from .records import RegionCondition, SolutionTree, TreeFeature

NO, YES = -1, -2
"""Where a tree ends."""

INDEXED_FEATURES: Mapping[str, Callable[[SizedContraction, int], int]] = {
    "FreeSizeA": SizedContraction.free_size_a,
    "FreeSizeB": SizedContraction.free_size_b,
    "BatchSize": SizedContraction.batch_size,
    "BoundSize": SizedContraction.bound_size,
}
"""Features that are a size. The index says which of A's free indices, for example."""

FACTORS = {
    "Tile0Granularity": ("mt0",),
    "Tile1Granularity": ("mt1",),
    "CUGranularity": ("mt0", "mt1", "cus"),
    "WavesPerSIMD": ("mt0", "mt1", "cus", "ws"),
    "ProblemScaleMeasure": (),
}
"""Features that are computed, with the names of their factors: the inverses of the macro tile's edges and of the number
of compute units, and waves for each SIMD unit."""


def feature_value(feature: TreeFeature, problem: SizedContraction) -> float:
    """The feature of a problem, in single precision."""
    if feature.name in INDEXED_FEATURES:
        return single(INDEXED_FEATURES[feature.name](problem, feature.index))
    m, n = single(problem.free_size_a()), single(problem.free_size_b())
    factors = feature.factors or {}
    match feature.name:
        case "Tile0Granularity":
            return _granularity(single(m * factors["mt0"]))
        case "Tile1Granularity":
            return _granularity(single(n * factors["mt1"]))
        case "CUGranularity":
            return _granularity(_tiles_per_unit(m, n, factors))
        case "WavesPerSIMD":
            return single(math.ceil(_tiles_per_unit(m, n, factors)) * factors["ws"])
    return single(problem.free_size_b() ** 2 * problem.batch_size())


def answer(tree: SolutionTree, features: Mapping[int, float]) -> bool:
    """Whether the tree says yes to a problem with these features. A tree leads to later nodes only, so this ends."""
    position = 0
    while position >= 0:
        node = tree.nodes[position]
        position = node.at_most if features[node.feature] <= node.threshold else node.above
    return position == YES


def _within(problem: SizedContraction, condition: RegionCondition) -> bool:
    low, high = condition.value if isinstance(condition.value, tuple) else (condition.value, condition.value)
    return low <= problem.sizes[condition.index] < high


def _multiple(size: int, condition: RegionCondition) -> bool:
    assert isinstance(condition.value, int), "only SizeInRange has a pair"
    return size % condition.value == 0


_Condition = Callable[[SizedContraction, RegionCondition], bool]
CONDITIONS: Mapping[str, _Condition] = {
    "TruePred": lambda problem, condition: True,
    "SizeEqual": lambda problem, condition: problem.sizes[condition.index] == condition.value,
    "ProblemSizeEqual": lambda problem, condition: problem.sizes[condition.index] == condition.value,
    "SizeGreaterThan": lambda problem, condition: problem.sizes[condition.index] > condition.value,  # type: ignore[operator]
    "SizeLessThan": lambda problem, condition: problem.sizes[condition.index] < condition.value,  # type: ignore[operator]
    "SizeMultiple": lambda problem, condition: _multiple(problem.sizes[condition.index], condition),
    "SizeInRange": _within,
    "Free0SizeMultiple": lambda problem, condition: _multiple(problem.tile_size(0), condition),
    "Free1SizeMultiple": lambda problem, condition: _multiple(problem.tile_size(1), condition),
    "BatchSizeMultiple": lambda problem, condition: _multiple(problem.batch_size(), condition),
    "BatchSizeEqual": lambda problem, condition: problem.batch_size() == condition.value,
    "BoundSizeMultiple": lambda problem, condition: _multiple(problem.bound_size(-1), condition),
    "And": lambda problem, condition: all(holds(problem, part) for part in condition.inner),
    "Or": lambda problem, condition: any(holds(problem, part) for part in condition.inner),
    "Not": lambda problem, condition: not holds(problem, condition.inner[0]),
}
"""The conditions of a region, by Tensile's names. A size is named by its position among the problem's sizes."""

OF_SIZES = ("SizeEqual", "ProblemSizeEqual", "SizeGreaterThan", "SizeLessThan", "SizeMultiple", "SizeInRange")
COMPOUND = ("And", "Or", "Not")


def holds(problem: SizedContraction, condition: RegionCondition) -> bool:
    """Whether a problem meets a condition of a region."""
    return CONDITIONS[condition.name](problem, condition)


def single(number: float) -> float:
    """The number rounded to single precision; infinite if it is too large."""
    return ctypes.c_float(number).value


def _granularity(tiles: float) -> float:
    """The share of the last tile (or wave of tiles) that does useful work, over all tiles."""
    return single(tiles / math.ceil(tiles)) if math.isfinite(tiles) and tiles > 0 else math.nan


def _tiles_per_unit(m: float, n: float, factors: Mapping[str, float]) -> float:
    rows, columns = (math.ceil(single(size * factors[name])) for size, name in ((m, "mt0"), (n, "mt1")))
    return single(single(float(rows) * float(columns)) * factors["cus"])
