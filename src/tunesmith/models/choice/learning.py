"""Which products would teach a choice model most: those that it doubts, from every family of the design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from tunesmith.problems.gemm import Gemm, gemm_type_named
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Problem

from .design.design import designed
from .fit.held_out import nearest_distances
from .model import ChoiceModel, place_of

CANDIDATES = 20
"""How many products are considered for each that is taken."""


def products_to_learn(
    model: ChoiceModel, count: int, seed: int, left_out: Collection[ListedGemm] = ()
) -> tuple[ListedGemm, ...]:
    """`count` products of the design, each family with its share, the most doubted of all first.

    The products are taken one by one. One that is taken counts as learned, so that its neighbours are doubted less.
    Fewer if the model's problem types compute fewer layouts than the design has.
    """
    shares = Counter(row.family for row in designed(count, seed))
    candidates = [
        (row, problem) for row in designed(CANDIDATES * count, seed, left_out) if (problem := _problem(model, row))
    ]
    if not candidates:
        return ()
    rows = [row for row, _ in candidates]
    places = np.array([place_of(Gemm.of(problem)) for _, problem in candidates])
    distances = nearest_distances(places, model.points)
    taken: list[int] = []
    while len(taken) < count and (open_indices := _open(rows, taken, shares)):
        best = max(open_indices, key=lambda index: distances[index])
        taken.append(best)
        distances = np.minimum(distances, nearest_distances(places, places[best][None]))
    return tuple(rows[index] for index in taken)


def _open(rows: Sequence[ListedGemm], taken: Sequence[int], shares: Counter[str]) -> list[int]:
    """The candidates that are left of families with a share left."""
    left = shares - Counter(rows[index].family for index in taken)
    return [index for index, row in enumerate(rows) if left[row.family] and index not in taken]


def _problem(model: ChoiceModel, row: ListedGemm) -> Problem | None:
    """The row as a problem of one of the model's types; None if it has none."""
    kinds = filter(None, map(gemm_type_named, model.types))
    kind = next((kind for kind in kinds if row.fits(kind)), None)
    return Problem(kind, row.sizes(kind)) if kind else None
