"""Chooses a solution for a size. Kept apart from `build`, so that a program that only chooses loads little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path

from tunesmith.records import Solution

from .document import Document, SizeRow
from .neighbours import Neighbours
from .read import read

MEMORY = 4096
"""The most sizes whose ranking is cached."""


class Rule(StrEnum):
    """The rule of a choice: the size was measured (exact), a choice model expects the time (predicted), sizes near it
    were measured (nearest), none of these could be used (fallback), nothing of the type was measured and a policy chose
    (heuristic), on a CPU no kernel is known to be faster than the BLAS, host time included (vendor), or the choice is
    what a shipped logic says of another device of the architecture, or of a data type that is as fast (sibling)."""

    EXACT = "exact"
    PREDICTED = "predicted"
    NEAREST = "nearest"
    FALLBACK = "fallback"
    HEURISTIC = "heuristic"
    VENDOR = "vendor"
    SIBLING = "sibling"


@dataclass(frozen=True, slots=True)
class Choice:
    """A solution for a size, and the rule that chose it.

    `expected_seconds` is the measured median for an exact match. For a nearest match it is the solution's time at
    `neighbour`, the nearest size at which it ran, scaled by the product of the sizes; if flops grow as that product (a
    GEMM, any contraction), this assumes the neighbour's GFLOP/s. It is no less than the shortest time measured
    anywhere, since a launch's cost does not shrink with the problem. For a predicted time, `doubt` is the standard
    deviation of the logarithm of its ratio to the vendor's, and `neighbour` the nearest measured size. For the
    fallback, a heuristic and a sibling's choice the time is None. For the vendor's BLAS it is the BLAS's time by the
    same scaling, or None if nothing near was measured.
    `distance` is the neighbour's Euclidean distance in the binary logarithms of the sizes and of their alignment.
    """

    solution: Solution
    name: str
    rule: Rule
    expected_seconds: float | None = None
    neighbour: tuple[int, ...] = ()
    distance: float = 0.0
    doubt: float | None = None


class Logic:
    """Chooses among a document's solutions. Pure: the caller asks the kernel which solutions are legal at a size.

    It is made of a document, or of a function that makes the document, which is called when it is first needed.
    """

    def __init__(self, document: Document | Callable[[], Document]) -> None:
        self._source = document
        self._ranking = lru_cache(MEMORY)(self._ranked)

    @cached_property
    def document(self) -> Document:
        source = self._source
        made = source() if callable(source) else source
        self._source = made  # what it was made of is freed
        return made

    @staticmethod
    def load(path: Path | str) -> Logic:
        """The logic in a file. Raises UserError, with file and line, for a file that is no library logic."""
        return Logic(read(Path(path)))

    def choose(self, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> Choice:
        """The first of `candidates`."""
        return self._exact(sizes, leading) or self._ranking(sizes)[0]

    def candidates(self, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> Iterator[Choice]:
        """Every solution once: the exact match, then those ranked by the nearest sizes, then the fallback.

        Raises ValueError for a wrong number of sizes.
        """
        exact = self._exact(sizes, leading)
        if exact:
            yield exact
        yield from (c for c in self._ranking(sizes) if exact is None or c.solution != exact.solution)

    def is_measured(self, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> bool:
        """Whether the logic has an exact match."""
        return (sizes, leading) in self._rows

    def nearest(self, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """The nearest measured size with leading dimensions if it has them, and its distance as in `Choice`. Empty and
        infinite if nothing was measured."""
        row, distance = self._neighbours.nearest(sizes)
        return (self.document.rows[row].where, distance) if math.isfinite(distance) else ((), distance)

    def _ranked(self, sizes: tuple[int, ...]) -> tuple[Choice, ...]:
        """The choices by the nearest sizes, then the fallback. Raises ValueError for a wrong number of sizes."""
        document = self.document
        if len(sizes) != len(document.problem_type.indices):
            indices = ", ".join(document.problem_type.indices)
            raise ValueError(f"{len(sizes)} sizes given, {document.problem_type.name} has {indices}")
        ranked: dict[int, Choice] = {}
        for index, near, distance in self._neighbours.of(sizes):
            named, row = document.solutions[index], document.rows[near]
            scaled = row.seconds(index) * math.prod(sizes) / math.prod(row.sizes)
            expected = max(scaled, self._shortest)
            ranked[index] = Choice(named.solution, named.name, Rule.NEAREST, expected, row.where, distance)
        if document.fallback not in ranked:
            named = document.solutions[document.fallback]
            ranked[document.fallback] = Choice(named.solution, named.name, Rule.FALLBACK)
        return tuple(ranked.values())

    def _exact(self, sizes: tuple[int, ...], leading: tuple[int, ...]) -> Choice | None:
        """The choice at a measured size; None at another."""
        row = self._rows.get((sizes, leading))
        if row is None:
            return None
        named = self.document.solutions[row.solution]
        return Choice(named.solution, named.name, Rule.EXACT, row.estimate.seconds, row.where)

    @cached_property
    def _rows(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], SizeRow]:
        return {(row.sizes, row.leading): row for row in self.document.rows}

    @cached_property
    def _neighbours(self) -> Neighbours:
        """Made when a size that was not measured is asked for: a program may need it for few types, or for none."""
        return Neighbours(self.document)

    @cached_property
    def _shortest(self) -> float:
        return min((row.estimate.seconds for row in self.document.rows), default=0.0)
