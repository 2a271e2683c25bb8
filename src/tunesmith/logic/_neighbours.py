"""What the measured sizes near another size say about every solution there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ._document import Document

SPEAK = 4
"""Nearest sizes that are asked. With 4 to 6 of them, the solution that is chosen for one of 231 GEMMs that was left out
took 1.07 of the best time in the geometric mean, with one 1.11 (`benchmarks/sizes_left_out.py`, H200, 2026-11-22)."""
CLOSE = 0.1
"""Distance below which a size is not heard more for being nearer."""
NOT_THERE = 1.0
"""What counts as the logarithm of the loss where a solution does not run."""
ALIGNED = 3
"""Doublings of a size's alignment that count: 8 elements of 16 bits are what a work-item loads at once."""

Floats = NDArray[np.float64]


class Neighbours:
    """Measured sizes as points, to find those near another size. Solutions are those that won at one of them."""

    def __init__(self, document: Document) -> None:
        rows = document.rows
        self._points = _point([row.sizes for row in rows]) if rows else np.empty((0, 0))
        self._gflops = np.array([row.gflops for row in rows])
        self._winners = np.array([row.solution for row in rows], dtype=int)
        seconds = np.full((len(rows), len(document.solutions)), math.inf)
        for place, row in enumerate(rows):
            for solution, time in (*row.others, (row.solution, row.estimate.seconds)):
                seconds[place, solution] = time
        self._ran = np.isfinite(seconds)
        with np.errstate(divide="ignore"):
            losses = np.log(seconds) - np.log(seconds.min(axis=1, keepdims=True))
        self._losses = np.where(self._ran, losses, NOT_THERE)

    def of(self, sizes: tuple[int, ...], without: int | None = None) -> Iterator[tuple[int, int, float]]:
        """The place of each solution, with that of the nearest row it ran at and the distance; what should be fastest
        first.

        That is what lost least at the nearest sizes, in the geometric mean, a size counting by the inverse square of
        its distance. Of equals the one comes first that won nearest, of equally near ones that with more GFLOP/s.
        `without` leaves one row out.
        """
        if not len(self._points):
            return
        # Rounded, so that sizes equally far up and down are equally far.
        distances = np.sqrt(((self._points - _point(sizes)) ** 2).sum(axis=1)).round(9)
        order = np.lexsort((-self._gflops, distances))
        order = order[order != without] if without is not None else order
        _, firsts = np.unique(self._winners[order], return_index=True)
        solutions = self._winners[order[np.sort(firsts)]]
        near = order[:SPEAK]
        heard = (CLOSE + distances[near]) ** -2.0
        lost = (heard @ self._losses[np.ix_(near, solutions)] / heard.sum()).round(9) if len(near) else np.empty(0)
        for solution in solutions[np.argsort(lost, kind="stable")]:
            row = order[self._ran[order, solution].argmax()]
            yield int(solution), int(row), float(distances[row])


def _point(sizes: Sequence[object]) -> Floats:
    """Binary logarithms of the sizes, an empty extent counting as one, and of how far they are aligned."""
    extents = np.maximum(np.asarray(sizes, dtype=np.int64), 1)
    aligned = np.gcd(extents, 1 << ALIGNED)
    return np.log2(np.concatenate((extents, aligned), axis=-1).astype(np.float64))
