"""Ranks a logic's solutions at a size that was not measured, by the measured sizes nearest to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .document import Document

NEAREST_COUNT = 4
"""The number of nearest sizes that are used. `benchmarks/held_out.py` fits this number on the run over one list of
GEMMs and scores it on the run over another list (`benchmarks/recorded/gemm_bf16_second/`)."""
DISTANCE_OFFSET = 0.1
"""Added to every distance, so that a very near size does not outweigh all others."""
NOT_THERE = 1.0
"""Counts as the logarithm of the loss at a size where a solution does not run."""
ALIGNED = 3
"""The number of doublings of a size's alignment that count: a work-item loads 8 elements of 16 bits at once."""


class Neighbours:
    """A document's measured sizes as points, to rank solutions at other sizes. Ranked are the solutions that won at a
    measured size, and the fallback."""

    def __init__(self, document: Document) -> None:
        rows = document.rows
        self._points = np.array([_point(row.sizes) for row in rows])
        self._rates = np.array([row.rate for row in rows])
        self._winners = np.array([row.solution for row in rows], dtype=int)
        self._fallback = document.fallback
        first_rows = {row.sizes: index for index, row in reversed(list(enumerate(rows)))}
        self._size = np.array([first_rows[row.sizes] for row in rows], dtype=int)
        seconds = np.full((len(rows), len(document.solutions)), math.inf)
        for index, row in enumerate(rows):
            for solution, time in ((row.solution, row.estimate.seconds), *row.others.items()):
                seconds[index, solution] = time
        self._ran = np.isfinite(seconds)
        losses = np.log(seconds) - np.log(seconds.min(axis=1, keepdims=True))
        self._losses = np.where(self._ran, losses, NOT_THERE)

    def nearest(self, sizes: tuple[int, ...]) -> tuple[int, float]:
        """The index of the nearest row, and its distance; infinite if there is no row."""
        if not len(self._winners):
            return 0, math.inf
        distances = self._distances(sizes)
        row = int(distances.argmin())
        return row, float(distances[row])

    def of(self, sizes: tuple[int, ...], without: int | None = None) -> Iterator[tuple[int, int, float]]:
        """The solutions by their indices, the one that should be fastest first; each with the index of the nearest row
        at which it ran, and the distance of that row.

        The first solution is the one with the smallest geometric mean of losses at the nearest sizes, where a size is
        weighted by the inverse square of its distance. Among equal solutions, the one that won at the nearest size
        comes first; among equally near ones, the one with the higher rate. `without` leaves out the row of that index.
        """
        order = np.arange(len(self._winners))
        order = order[order != without] if without is not None else order
        if not len(order):
            return
        distances = self._distances(sizes)
        order = order[np.lexsort((-self._rates[order], distances[order]))]
        solutions = self._winners[order[_firsts(self._winners[order])]]
        if self._fallback not in solutions and self._ran[order, self._fallback].any():
            solutions = np.append(solutions, self._fallback)
        # A size with several leading dimensions counts once.
        near = order[_firsts(self._size[order])[:NEAREST_COUNT]]
        lost = ((DISTANCE_OFFSET + distances[near]) ** -2.0 @ self._losses[np.ix_(near, solutions)]).round(9)
        for solution in solutions[np.argsort(lost, kind="stable")]:
            row = order[self._ran[order, solution].argmax()]
            yield int(solution), int(row), float(distances[row])

    def _distances(self, sizes: tuple[int, ...]) -> NDArray[np.float64]:
        """The distance of each row, rounded, so that sizes equally far above and below are at the same distance."""
        squares = (self._points - _point(sizes)) ** 2
        distances: NDArray[np.float64] = np.sqrt(squares.sum(axis=1)).round(9)
        return distances


def _firsts(values: NDArray[np.int_]) -> NDArray[np.intp]:
    """The indices at which each distinct value occurs first, ascending."""
    return np.sort(np.unique(values, return_index=True)[1])


def _point(sizes: Sequence[int]) -> list[float]:
    """The binary logarithms of the sizes (0 counts as 1), then those of their alignments."""
    extents = [max(size, 1) for size in sizes]
    return [math.log2(extent) for extent in (*extents, *(math.gcd(extent, 1 << ALIGNED) for extent in extents))]
