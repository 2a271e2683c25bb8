"""Which solution for which size: light enough for a program's start, apart from the analysis in `build`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from tunesmith.records import Solution

from ._document import Document, Row
from ._read import read

MEMORY = 4096
"""Sizes whose neighbours are remembered."""

Where = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and leading dimensions, the latter empty where they are natural."""


class Rule(StrEnum):
    """Which rule answered: the size itself was measured, a size near it was, or neither could be used."""

    EXACT = "exact"
    NEAREST = "nearest"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Choice:
    """A solution for a size, and why it.

    `expected_seconds` is the measured median for an exact match. For a neighbour it is the neighbour's time scaled by
    the product of the sizes, that is, the neighbour's GFLOP/s wherever flops grow as that product (a GEMM, any
    contraction), but no less than the shortest time measured anywhere, since a launch's cost does not shrink with the
    problem. For the fallback it is not known. `neighbour` is the measured size that spoke for the solution and
    `distance` how far away it is: Euclidean, over the sizes' binary logarithms.
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
        self._neighbours = Neighbours(document.rows)
        self._shortest = min((row.estimate.seconds for row in document.rows), default=0.0)
        self._exact = {(row.sizes, row.leading): self._measured(row) for row in document.rows}
        self._remembered: dict[Where, tuple[Choice, ...]] = {}

    @staticmethod
    def load(path: Path | str) -> Logic:
        """Read a library logic; UserError, with file and line, for a file that is none."""
        return Logic(read(Path(path)))

    def choose(self, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> Choice:
        """The first of `candidates`."""
        return self._exact.get((sizes, leading)) or self._others(sizes, leading)[0]

    def candidates(self, sizes: tuple[int, ...], leading: tuple[int, ...] = ()) -> Iterator[Choice]:
        """Every solution once: the exact match, then by distance of the nearest size that it won, then the fallback.

        Of equally near sizes the one with the higher GFLOP/s speaks first. ValueError for a wrong number of sizes.
        """
        exact = self._exact.get((sizes, leading))
        if exact:
            yield exact
        yield from (c for c in self._others(sizes, leading) if exact is None or c.solution is not exact.solution)

    def _others(self, sizes: tuple[int, ...], leading: tuple[int, ...]) -> tuple[Choice, ...]:
        """What neighbours and fallback say, remembered."""
        known = self._remembered.get((sizes, leading))
        if known is None:
            if len(self._remembered) >= MEMORY:
                self._remembered.clear()
            known = self._remembered[sizes, leading] = tuple(self._ranked(sizes))
        return known

    def _ranked(self, sizes: tuple[int, ...]) -> Iterator[Choice]:
        document = self.document
        if len(sizes) != len(document.problem_type.indices):
            wanted = ", ".join(document.problem_type.indices)
            raise ValueError(f"{len(sizes)} sizes given, {document.problem_type.name} has {wanted}")
        seen = set()
        for place, distance in self._neighbours.of(sizes):
            row = document.rows[place]
            seen.add(row.solution)
            named = document.solutions[row.solution]
            scaled = row.estimate.seconds * math.prod(sizes) / math.prod(row.sizes)
            expected = max(scaled, self._shortest)
            yield Choice(named.solution, named.name, Rule.NEAREST, expected, row.where, distance)
        if document.fallback not in seen:
            named = document.solutions[document.fallback]
            yield Choice(named.solution, named.name, Rule.FALLBACK)

    def _measured(self, row: Row) -> Choice:
        named = self.document.solutions[row.solution]
        return Choice(named.solution, named.name, Rule.EXACT, row.estimate.seconds, row.where)


class Neighbours:
    """Measured sizes as points, to find those near another size."""

    def __init__(self, rows: Sequence[Row]) -> None:
        dimensions = len(rows[0].sizes) if rows else 0
        self._points = _point([row.sizes for row in rows]).reshape(len(rows), dimensions)
        self._gflops = np.array([row.gflops for row in rows])
        self._solutions = np.array([row.solution for row in rows], dtype=int)

    def of(self, sizes: tuple[int, ...], without: int | None = None) -> Iterator[tuple[int, float]]:
        """For each solution, the place of its row nearest to `sizes` and the distance, nearest first.

        `without` leaves one row out. Distances are rounded, so that rows equally far up and down are equally far.
        """
        if not len(self._points):
            return
        distances = np.sqrt(((self._points - _point(sizes)) ** 2).sum(axis=1)).round(9)
        order = np.lexsort((-self._gflops, distances))
        order = order[order != without] if without is not None else order
        _, firsts = np.unique(self._solutions[order], return_index=True)
        for place in order[np.sort(firsts)]:
            yield int(place), float(distances[place])


def _point(sizes: Sequence[object]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Binary logarithms; an empty extent counts as one."""
    return np.log2(np.maximum(np.asarray(sizes, dtype=np.float64), 1.0))
