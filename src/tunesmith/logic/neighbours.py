"""What the measured sizes near another size say about every solution there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .document import Document

SPEAK = 4
"""Nearest sizes that are asked. `benchmarks/held_out.py` fits it on the run over one list of GEMMs and scores it on
that over another (`benchmarks/recorded/gemm_bf16_second/`)."""
CLOSE = 0.1
"""Added to every distance, so that a size that is very near does not drown all others."""
NOT_THERE = 1.0
"""What counts as the logarithm of the loss where a solution does not run."""
ALIGNED = 3
"""Doublings of a size's alignment that count: 8 elements of 16 bits are what a work-item loads at once."""


class Neighbours:
    """Measured sizes as points, to find those near another size. Of the solutions, those that won at one of them speak,
    and the fallback."""

    def __init__(self, document: Document) -> None:
        rows = document.rows
        self._points = np.array([_point(row.sizes) for row in rows])
        self._rates = np.array([row.rate for row in rows])
        self._winners = np.array([row.solution for row in rows], dtype=int)
        self._fallback = document.fallback
        known = {row.sizes: index for index, row in reversed(list(enumerate(rows)))}
        self._size = np.array([known[row.sizes] for row in rows], dtype=int)
        seconds = np.full((len(rows), len(document.solutions)), math.inf)
        for index, row in enumerate(rows):
            for solution, time in ((row.solution, row.estimate.seconds), *row.others):
                seconds[index, solution] = time
        self._ran = np.isfinite(seconds)
        losses = np.log(seconds) - np.log(seconds.min(axis=1, keepdims=True))
        self._losses = np.where(self._ran, losses, NOT_THERE)

    def of(self, sizes: tuple[int, ...], without: int | None = None) -> Iterator[tuple[int, int, float]]:
        """The place of each solution, with that of the nearest row it ran at and the distance; what should be fastest
        first.

        That is what lost least at the nearest sizes, in the geometric mean, a size counting by the inverse square of
        its distance. Of equals the one comes first that won nearest, of equally near ones that with the higher rate.
        `without` leaves one row out.
        """
        order = np.arange(len(self._winners))
        order = order[order != without] if without is not None else order
        if not len(order):
            return
        # Rounded, so that sizes equally far up and down are equally far.
        distances = np.sqrt(((self._points - _point(sizes)) ** 2).sum(axis=1)).round(9)
        order = order[np.lexsort((-self._rates[order], distances[order]))]
        solutions = self._winners[order[_firsts(self._winners[order])]]
        if self._fallback not in solutions and self._ran[order, self._fallback].any():
            solutions = np.append(solutions, self._fallback)
        # A size with several leading dimensions speaks once.
        near = order[_firsts(self._size[order])[:SPEAK]]
        lost = ((CLOSE + distances[near]) ** -2.0 @ self._losses[np.ix_(near, solutions)]).round(9)
        for solution in solutions[np.argsort(lost, kind="stable")]:
            row = order[self._ran[order, solution].argmax()]
            yield int(solution), int(row), float(distances[row])


def _firsts(found: NDArray[np.int_]) -> NDArray[np.intp]:
    """Where each of what was found came first, in this order."""
    return np.sort(np.unique(found, return_index=True)[1])


def _point(sizes: Sequence[int]) -> list[float]:
    """Binary logarithms of the sizes, an empty extent counting as one, and of how far they are aligned."""
    extents = [max(size, 1) for size in sizes]
    return [math.log2(extent) for extent in (*extents, *(math.gcd(extent, 1 << ALIGNED) for extent in extents))]
