"""Chooses a solution of a library logic for a problem as Tensile's run time does.

Source: ROCm/Tensile, `PropertyMatching.hpp` (tables) and `DecisionTree.hpp`. Range rules are those of Tensile before
October 2018: exact sizes first, then the ranges.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from tunesmith.records import UserError

from .assertions import unmet
from .contraction import ContractionType, SizedContraction
from .distances import DISTANCES, Key, can_be_nearer
from .forest import answer, feature_value, holds
from .records import Distance, ExactRow, LoggedSolution, RangeRule, TensileLogic, TreeRegion


class TensileRule(StrEnum):
    """What chose a solution: the table has the size (exact), a range rule, the nearest row of the table, the next grid
    point, a decision tree, or a region's fallback; none if Tensile goes on to its next file."""

    EXACT = "exact"
    RANGE = "range"
    NEAREST = "nearest"
    GRID = "grid"
    TREE = "tree"
    FALLBACK = "fallback"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TensileChoice:
    """A solution for a problem and the rule that chose it. Without a solution, the rule is NONE.

    `row` is the table's row that decided, and `distance` how far it is, in the unit of the logic's distance. `detail`
    tells the ranges or the tree in words. `passed_over` has the solutions that would have come first, with the
    assertion that the problem does not meet.
    """

    rule: TensileRule
    solution: LoggedSolution | None = None
    row: ExactRow | None = None
    distance: float | None = None
    detail: str = ""
    passed_over: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _KeyedRow:
    key: Key
    row: ExactRow


class TensileSelector:
    """Chooses among the solutions of one logic. The table is sorted once."""

    def __init__(self, logic: TensileLogic) -> None:
        self.logic = logic
        has_batch = logic.distance is Distance.EQUALITY
        keyed = [_KeyedRow(key_of(logic.problem_type, row.sizes, has_batch), row) for row in logic.rows]
        # A grid has no speeds, so that rows with the same key keep the file's order.
        is_grid = logic.distance is Distance.GRID
        self._table = sorted(keyed, key=lambda entry: (entry.key, 0.0 if is_grid else -entry.row.speed))
        self._keys = [entry.key for entry in self._table]
        self._has_batch = has_batch

    def choose(self, problem: SizedContraction) -> TensileChoice:
        """The choice for a problem of the logic's type. Raises UserError for a logic that chooses by chance."""
        return _Search(self.logic, self._table, self._keys, problem, self._has_batch).choice()


def choose(logic: TensileLogic, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> TensileChoice:
    """The choice for sizes in the order of the type's indices. For many sizes, keep a TensileSelector."""
    return TensileSelector(logic).choose(SizedContraction(logic.problem_type, sizes, leading))


def key_of(problem_type: ContractionType, sizes: tuple[int, ...], has_batch: bool) -> Key:
    """What rows are compared by: the first free size of A and of B, the first summed size; with `has_batch` the first
    batch size comes before the summed size. Leading dimensions do not count."""
    batch = problem_type.batch[:1] if has_batch else ()
    indices = (*problem_type.free_a[:1], *problem_type.free_b[:1], *batch, *problem_type.summed[:1])
    return tuple(sizes[index] for index in indices)


@dataclass
class _Search:
    """One choice. Solutions that the problem does not meet the assertions of are noted on the way."""

    logic: TensileLogic
    table: list[_KeyedRow]
    keys: list[Key]
    problem: SizedContraction
    has_batch: bool

    def __post_init__(self) -> None:
        self.passed_over: dict[int, str] = {}
        self.key = key_of(self.logic.problem_type, self.problem.sizes, self.has_batch)

    def choice(self) -> TensileChoice:
        if self.logic.regions:
            return self._by_regions()
        if self.logic.ranges and (found := self._by_ranges()):
            return found
        match self.logic.distance:
            case Distance.EQUALITY:
                return self._equal()
            case Distance.GRID:
                return self._on_grid()
            case Distance.RANDOM:
                location = f"{self.logic.path}:{self.logic.distance_line}"
                what = "the distance Random chooses by chance, so that there is no answer to give"
                raise UserError(location, what, "write another distance, such as Euclidean")
        return self._nearest()

    def _may_run(self, index: int) -> bool:
        reason = unmet(self.logic.solutions[index], self.problem)
        if reason:
            self.passed_over[index] = reason
        return not reason

    def _chosen(
        self,
        rule: TensileRule,
        index: int,
        row: ExactRow | None = None,
        distance: float | None = None,
        detail: str = "",
    ) -> TensileChoice:
        passed = tuple(self.passed_over.items())
        return TensileChoice(rule, self.logic.solutions[index], row, distance, detail, passed)

    def _none(self, detail: str) -> TensileChoice:
        return TensileChoice(TensileRule.NONE, detail=detail, passed_over=tuple(self.passed_over.items()))

    def _of_row(self, found: tuple[_KeyedRow, float] | None, rule: TensileRule) -> TensileChoice:
        if found is None:
            return self._none("no row of the table has a solution that may run this size")
        entry, distance = found
        is_other_batch = entry.key == self.key and entry.row.sizes != self.problem.sizes
        detail = "the batch does not count in this table" if is_other_batch else ""
        rule = TensileRule.EXACT if entry.key == self.key else rule
        return self._chosen(rule, entry.row.solution, entry.row, distance, detail)

    def _equal(self) -> TensileChoice:
        """The first row with this very key, and no other."""
        start = bisect_left(self.keys, self.key)
        if start == len(self.keys) or self.keys[start] != self.key:
            return self._none("the table does not have this size, and Equality takes no other")
        entry = self.table[start]
        return self._of_row((entry, 0.0) if self._may_run(entry.row.solution) else None, TensileRule.EXACT)

    def _nearest(self) -> TensileChoice:
        """Rows from the problem's place in the order of keys to the right, then to the left, as long as the first size
        lets a row be nearer; of equally near rows the one with the higher speed."""
        assert self.logic.distance is not None, "a logic with a table has a distance"
        kind, measure = self.logic.distance, DISTANCES[self.logic.distance]
        start = bisect_left(self.keys, self.key)
        best: tuple[_KeyedRow, float] | None = None
        least, speed = inf, 0.0
        for side in (range(start, len(self.table)), self._leftwards(start)):
            for position in side:
                entry = self.table[position]
                if best and not can_be_nearer(kind, self.key, entry.key, least):
                    break
                distance = measure(self.key, entry.key)
                is_nearer = distance < least or (distance == least and entry.row.speed > speed)
                if is_nearer and self._may_run(entry.row.solution):
                    best, least, speed = (entry, distance), distance, entry.row.speed
        return self._of_row(best, TensileRule.NEAREST)

    def _leftwards(self, start: int) -> range:
        return range(start - 1, -1, -1)

    def _on_grid(self) -> TensileChoice:
        """The nearest K at the next grid point that is at least as large in M, then in N; if no solution there may run,
        at the points after it, and at last at the points before it."""
        least, best, position, start = inf, None, 0, 0
        measure, last = DISTANCES[Distance.GRID], len(self.table)
        while best is None and position < last:
            start, position = self._next_point(position)
            for entry in self.table[start:position]:
                distance = measure(self.key, entry.key)
                if distance < least and self._may_run(entry.row.solution):
                    best, least = (entry, distance), distance
        for before in self._leftwards(start) if best is None else ():
            entry = self.table[before]
            if self._may_run(entry.row.solution):
                best = entry, measure(self.key, entry.key)
                break
        return self._of_row(best, TensileRule.GRID)

    def _next_point(self, position: int) -> tuple[int, int]:
        """The rows from `position` on at the next grid point of M and N: their first position, and the one behind."""
        m, n = (min(self.key[0], self.keys[-1][0]), self.key[1])
        first = bisect_left(self.keys, m, position, key=lambda key: key[0])
        behind = bisect_left(self.keys, self.keys[first][0] + 1, first, key=lambda key: key[0])
        n = min(n, self.keys[behind - 1][1])
        start = bisect_left(self.keys, n, first, behind, key=lambda key: key[1])
        return start, bisect_left(self.keys, self.keys[start][1] + 1, start, behind, key=lambda key: key[1])

    def _by_ranges(self) -> TensileChoice | None:
        """The row with these very sizes, else the range rules; None if the solution of neither may run."""
        rows = (row for row in self.logic.rows if row.sizes == self.problem.sizes and self._may_run(row.solution))
        fastest = max(rows, key=lambda row: row.speed, default=None)
        if fastest is not None:
            return self._chosen(TensileRule.EXACT, fastest.solution, fastest, 0.0)
        for index, path in _within_ranges(self.logic.ranges, self.logic.index_order, self.problem.sizes):
            if not self._may_run(index):
                return None
            names = [self.logic.problem_type.size_names[position] for position in self.logic.index_order]
            limits = ((name, limit) for name, limit in zip(names, path, strict=True) if limit != -1)
            detail = ", ".join(f"{name} <= {limit}" for name, limit in limits) or "any size"
            return self._chosen(TensileRule.RANGE, index, detail=detail)
        return None

    def _by_regions(self) -> TensileChoice:
        for number, region in enumerate(self.logic.regions):
            if all(holds(self.problem, condition) for condition in region.conditions):
                found = self._in_region(number, region)
                if found:
                    return found
        return self._none("no region's tree says yes, and no fallback may run")

    def _in_region(self, number: int, region: TreeRegion) -> TensileChoice | None:
        features = {index: feature_value(feature, self.problem) for index, feature in enumerate(region.features)}
        for position, tree in enumerate(region.trees):
            if self._may_run(tree.solution) and answer(tree, features):
                return self._chosen(TensileRule.TREE, tree.solution, detail=f"tree {position} of region {number}")
        if region.fallback is not None and self._may_run(region.fallback):
            return self._chosen(TensileRule.FALLBACK, region.fallback, detail=f"no tree of region {number} says yes")
        return None


def _within_ranges(
    rules: tuple[RangeRule, ...], order: tuple[int, ...], sizes: tuple[int, ...]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The solution of the first rule of each level that the sizes are in, with the thresholds that led to it."""
    path: list[int] = []
    for index in order:
        rule = next((rule for rule in rules if rule.threshold < 0 or sizes[index] <= rule.threshold), None)
        if rule is None:
            return
        path.append(rule.threshold)
        if isinstance(rule.inner, int):
            yield rule.inner, tuple(path)
            return
        rules = rule.inner
