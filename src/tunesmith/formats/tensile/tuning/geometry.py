"""Work-groups and thread tiles from the parameters of version 2: edges with shapes, numbers of elements with shapes.

Version 2.0 gives an edge and a shape of each (-1 doubles the first side, 1 the second); version 2.4 gives the number of
work-items or of elements and the ratio of the sides. SplitU is how many work-items share the elements of D.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from math import isqrt

from tunesmith.problems.keys import is_integer
from tunesmith.records import Value

Sides = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SideFormula:
    """How parameters of one era give a list of sides. `parameters` are the era's names with their defaults; the first
    one marks the era. `sides` gives None for values that make no whole sides."""

    target: str
    parameters: Mapping[str, int]
    sides: Callable[..., Sides | None]

    @property
    def mark(self) -> str:
        return next(iter(self.parameters))

    def of(self, values: Mapping[str, Value]) -> Sides | None:
        """The sides for the given values, with defaults for absent ones; None if a value is no whole number, or if the
        values make no whole sides."""
        numbers = [values.get(name, default) for name, default in self.parameters.items()]
        if not all(is_integer(number) for number in numbers):
            return None
        return self.sides(*numbers)


def _by_edge(edge: int, shape: int) -> Sides | None:
    if edge < 1 or shape not in (-1, 0, 1):
        return None
    return (edge * 2 if shape < 0 else edge, edge * 2 if shape > 0 else edge)


def _by_count(count: int, shape: int) -> Sides | None:
    """Two sides with the product `count`. A shape above 0 is the ratio of the second side to the first."""
    ratio = max(abs(shape), 1)
    short = isqrt(count // ratio) if count > 0 else 0
    if short < 1 or short * short * ratio != count:
        return None
    return (short * ratio, short) if shape < 0 else (short, short * ratio)


def _group_by_edge(edge: int, shape: int, split: int) -> Sides | None:
    sides = _by_edge(edge, shape)
    return (*sides, split) if sides and split > 0 else None


def _group_by_count(threads: int, shape: int, split: int) -> Sides | None:
    if split < 1 or threads % split:
        return None
    sides = _by_count(threads // split, shape)
    return (*sides, split) if sides else None


FORMULAS = (
    SideFormula("WorkGroup", {"WorkGroupEdge": 16, "WorkGroupShape": 0, "SplitU": 1}, _group_by_edge),
    SideFormula("ThreadTile", {"ThreadTileEdge": 4, "ThreadTileShape": 0}, _by_edge),
    SideFormula("WorkGroup", {"NumThreads": 256, "GroupShape": 0, "SplitU": 1}, _group_by_count),
    SideFormula("ThreadTile", {"ThreadTileNumElements": 16, "ThreadTileShape": 0}, _by_count),
)
"""The formulas of version 2.0 (with edges), then those of 2.4 (with counts)."""

OLDER_NAMES = {
    "MicroTileEdge": "ThreadTileEdge",
    "MicroTileShape": "ThreadTileShape",
    "SplitK": "SplitU",
    "IntraSplitU": "SplitU",
    "LocalSplitU": "SplitU",
}
"""Other names of parameters of the formulas: those of the design of 2016, and those of May 2017, before version 3."""

PARTS = frozenset(name for formula in FORMULAS for name in formula.parameters)
"""Parameters that only together make a work-group or a thread tile."""


def formula_for(target: str, names: frozenset[str] | set[str]) -> SideFormula | None:
    """The formula of `target` (WorkGroup or ThreadTile) for a group that gives these parameters; None if the group
    gives none of its parts."""
    offered = [formula for formula in FORMULAS if formula.target == target and names & formula.parameters.keys()]
    # Shapes and SplitU are shared by both eras: the edge or the count decides, and edges are older.
    counted = any(name in names for name in ("NumThreads", "GroupShape", "ThreadTileNumElements"))
    return offered[-1 if counted else 0] if offered else None


def macro_tile(work_group: Value | None, thread_tile: Value | None) -> tuple[int, int] | None:
    """The macro tile of a work-group and a thread tile; None if a value is none of the two."""
    lists = (work_group, thread_tile)
    if not all(isinstance(each, tuple) and len(each) >= 2 and all(map(is_integer, each)) for each in lists):
        return None
    (rows, columns), (high, wide) = (each[:2] for each in lists if isinstance(each, tuple))
    return int(rows) * int(high), int(columns) * int(wide)  # type: ignore[arg-type]  # checked above


def largest_ratio(of_file: int | None, of_group: Value | None, names: Container[str]) -> int:
    """How many times as long as the other a macro tile's side may be in version 2.

    `of_file` is MaxMacroTileRatio of the file's settings, `of_group` MacroTileMaxRatio of a size group. If both are
    None, the limit is 2 for a group with edges and 4 for one with counts.
    """
    by_default = 2 if "WorkGroupEdge" in names else 4
    return next(int(ratio) for ratio in (of_file, of_group, by_default) if is_integer(ratio))


def is_within(tile: tuple[int, int], ratio: int) -> bool:
    """Whether a macro tile's sides have at most this ratio, rounded down as in Tensile."""
    return max(tile) // max(min(tile), 1) <= ratio
