"""Which solution for which size: light enough for a program's start, apart from the analysis in `build`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from tunesmith.records import Solution

from .document import Document, SizeRow
from .neighbours import Neighbours
from .read import read

MEMORY = 4096
"""Sizes whose neighbours are remembered."""


class Rule(StrEnum):
    """Which rule answered: the size itself was measured, sizes near it were, neither could be used, or nothing of the
    type was measured and a policy chose."""

    EXACT = "exact"
    NEAREST = "nearest"
    FALLBACK = "fallback"
    HEURISTIC = "heuristic"


@dataclass(frozen=True, slots=True)
class Choice:
    """A solution for a size, and why it.

    `expected_seconds` is the measured median for an exact match. Elsewhere it is the solution's time at the nearest
    size it ran at, `neighbour`, scaled by the product of the sizes, that is, by its GFLOP/s there wherever flops grow
    as that product (a GEMM, any contraction), but no less than the shortest time measured anywhere, since a launch's
    cost does not shrink with the problem. For the fallback and a heuristic it is not known. `distance` says how far
    away the neighbour is: Euclidean, over the binary logarithms of the sizes and of their alignment.
    """

    solution: Solution
    name: str
    rule: Rule
    expected_seconds: float | None = None
    neighbour: tuple[int, ...] = ()
    distance: float = 0.0


class Logic:
    """Chooses among a document's solutions. Pure: what is legal at a size is for the caller to ask the kernel."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._neighbours = Neighbours(document)
        self._shortest = min((row.estimate.seconds for row in document.rows), default=0.0)
        self._exact = {(row.sizes, row.leading): self._measured(row) for row in document.rows}
        self._others = lru_cache(MEMORY)(self._ranked)

    @staticmethod
    def load(path: Path | str) -> Logic:
        """Read a library logic; UserError, with file and line, for a file that is none."""
        return Logic(read(Path(path)))

    def choose(self, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> Choice:
        """The first of `candidates`."""
        return self._exact.get((sizes, leading)) or self._others(sizes)[0]

    def candidates(self, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> Iterator[Choice]:
        """Every solution once: the exact match, then by what the nearest sizes say, then the fallback.

        ValueError for a wrong number of sizes.
        """
        exact = self._exact.get((sizes, leading))
        if exact:
            yield exact
        yield from (c for c in self._others(sizes) if exact is None or c.solution is not exact.solution)

    def _ranked(self, sizes: tuple[int, ...]) -> tuple[Choice, ...]:
        """What neighbours and fallback say."""
        document = self.document
        if len(sizes) != len(document.problem_type.indices):
            wanted = ", ".join(document.problem_type.indices)
            raise ValueError(f"{len(sizes)} sizes given, {document.problem_type.name} has {wanted}")
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

    def _measured(self, row: SizeRow) -> Choice:
        named = self.document.solutions[row.solution]
        return Choice(named.solution, named.name, Rule.EXACT, row.estimate.seconds, row.where)
