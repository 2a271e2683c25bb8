"""The contents of a Tensile library logic as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .contraction import ContractionType


class LogicForm(StrEnum):
    """How a file is written: as a list of elements by position, or as keys with values."""

    LIST = "list"
    KEYS = "keys"


class Distance(StrEnum):
    """How the nearest row of a table is found (`distances.py`)."""

    EUCLIDEAN = "Euclidean"
    MANHATTAN = "Manhattan"
    RATIO = "Ratio"
    JSD = "JSD"
    RANDOM = "Random"
    EQUALITY = "Equality"
    GRID = "GridBased"


@dataclass(frozen=True, slots=True)
class LogicHardware:
    """The device that a logic is for: its architecture, and its compute units and whether it is an APU if the file
    tells them."""

    architecture: str
    compute_units: int | None = None
    is_apu: bool | None = None


@dataclass(frozen=True, slots=True)
class LoggedSolution:
    """A solution: its position in the file, by which tables name it, and its parameters as the file has them.

    `own_index` is the file's SolutionIndex, None if there is none. `line` is the solution's line in the file.
    """

    index: int
    name: str
    parameters: Mapping[str, Any]
    own_index: int | None
    line: int


@dataclass(frozen=True, slots=True)
class ExactRow:
    """A row of the table: sizes, the leading dimensions of D, C, A and B if the row has them, the solution's index, and
    the recorded speed (GFLOP/s, or GFLOP/s per compute unit for the metric CUEfficiency)."""

    sizes: tuple[int, ...]
    leading: tuple[int, ...]
    solution: int
    speed: float
    line: int


@dataclass(frozen=True, slots=True)
class RangeRule:
    """A rule of the range logic, for sizes up to `threshold` (-1 has no end): rules for the next index, or a solution's
    index."""

    threshold: int
    inner: tuple[RangeRule, ...] | int


@dataclass(frozen=True, slots=True)
class TreeFeature:
    """A number that decision trees ask for: its name, and its index or its factors."""

    name: str
    index: int = 0
    factors: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A question: is the feature at most `threshold`? Then the node `at_most` is next, otherwise `above`.

    -1 ends with no, and -2 with yes.
    """

    feature: int
    threshold: float
    at_most: int
    above: int


@dataclass(frozen=True, slots=True)
class SolutionTree:
    """A decision tree that says whether its solution is good for a problem."""

    solution: int
    nodes: tuple[TreeNode, ...]


@dataclass(frozen=True, slots=True)
class RegionCondition:
    """A condition on a problem, such as `SizeInRange`, by Tensile's name; `inner` has the parts of And, Or and Not."""

    name: str
    index: int = 0
    value: int | tuple[int, int] = 0
    inner: tuple[RegionCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeRegion:
    """Decision trees for the problems that meet all conditions, asked in order; `fallback` is a solution's index."""

    conditions: tuple[RegionCondition, ...]
    features: tuple[TreeFeature, ...]
    trees: tuple[SolutionTree, ...]
    fallback: int | None


@dataclass(frozen=True)
class TensileLogic:
    """A whole library logic of Tensile for one problem type.

    It has a table (`rows`, `distance`), to which range rules may be added, or regions with decision trees. `variants`
    names the arithmetic that the file is for, such as Fp16AltImpl. `notes` tells what of the file is not read.
    """

    path: str
    form: LogicForm
    version: str
    schedule: str
    hardware: LogicHardware
    devices: tuple[str, ...]
    problem_type: ContractionType
    solutions: tuple[LoggedSolution, ...]
    index_order: tuple[int, ...] = ()
    rows: tuple[ExactRow, ...] = ()
    ranges: tuple[RangeRule, ...] = ()
    distance: Distance | None = None
    distance_line: int = 1
    regions: tuple[TreeRegion, ...] = ()
    metric: str = "DeviceEfficiency"
    variants: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
