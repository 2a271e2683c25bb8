"""Lists of products by design: every family gets its share, filled evenly by a Sobol sequence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Protocol

import numpy as np

from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import ProblemType

from .architectures import BATCHED_MODELS, MODELS
from .spaces import BATCHED_BOXES, BOXES

MOST_FLOP = 1.6e12
"""About 2.3 ms at 700 TFLOP/s, so that a slow kernel also ends in time."""
MOST_ELEMENTS = 2**30
"""Elements of A, B and D together."""
DIMENSIONS = 8
TRIES = 64
"""How many products are drawn for each that is needed: the others are too large, repeated, or left out."""


class DesignFamily(Protocol):
    """Products that are alike. `product` makes one of `DIMENSIONS` numbers from 0 to 1."""

    @property
    def name(self) -> str: ...

    def product(self, units: list[float]) -> ListedGemm: ...


SINGLE: tuple[DesignFamily, ...] = (*BOXES, *MODELS)
BATCHED: tuple[DesignFamily, ...] = (*BATCHED_BOXES, *BATCHED_MODELS)
FAMILIES = (*SINGLE, *BATCHED)
SHARES: Mapping[DesignFamily, float] = {
    **dict(zip(SINGLE, (3, 2, 2, 1, 1, 1.5, 1, 0.5, 0.5, 3, 2, 1, 1, 1, 1.5, 0.5, 0.5, 1), strict=True)),
    **dict(zip(BATCHED, (3, 1.5, 1, 1, 3, 1, 1), strict=True)),
}
"""How many products a family gets, beside the others."""
SINGLE_NAMES = tuple(family.name for family in SINGLE)
BATCHED_NAMES = tuple(family.name for family in BATCHED)


def designed(
    count: int, seed: int, left_out: Collection[ListedGemm] = (), families: Collection[str] = SINGLE_NAMES
) -> tuple[ListedGemm, ...]:
    """A list of `count` different products of these families, without the sizes of `left_out`. Families alternate, so
    that the beginning of the list is a smaller design.

    The same arguments give the same products.
    """
    taken = {_sizes(row) for row in left_out}
    positions: list[tuple[float, ListedGemm]] = []
    for family, needed in _counts(count, families).items():
        drawn = _drawn(family, needed, (seed, FAMILIES.index(family)))
        fresh = (row for row in drawn if is_feasible(row) and _sizes(row) not in taken)
        for number, row in enumerate(islice(fresh, needed)):
            taken.add(_sizes(row))
            positions.append(((number + 0.5) / needed, row))
    return tuple(row for _, row in sorted(positions, key=itemgetter(0)))


def families_for(kinds: Iterable[ProblemType]) -> tuple[str, ...]:
    """The families whose products such types compute: of batches, of single matrices, or both."""
    flags = {kind.fields.flag("Batched") for kind in kinds}
    return (*(SINGLE_NAMES if False in flags else ()), *(BATCHED_NAMES if True in flags else ()))


def is_feasible(row: ListedGemm) -> bool:
    """Whether one GPU computes the product in about a millisecond, and has memory for it."""
    elements = row.m * row.k + row.k * row.n + row.m * row.n
    return 2 * row.m * row.n * row.k * row.batch <= MOST_FLOP and elements * row.batch <= MOST_ELEMENTS


def _sizes(row: ListedGemm) -> tuple[int, int, int, int]:
    return row.m, row.n, row.k, row.batch


def _counts(count: int, families: Collection[str]) -> dict[DesignFamily, int]:
    """The number of products of each of these families: its share, rounded so that the sum is `count`."""
    shares = {family: share for family, share in SHARES.items() if family.name in families}
    ends = np.rint(np.cumsum(list(shares.values())) * count / sum(shares.values())).astype(int)
    return dict(zip(shares, np.diff(ends, prepend=0).tolist(), strict=True))


def _drawn(family: DesignFamily, needed: int, seed: tuple[int, int]) -> Iterator[ListedGemm]:
    """Products of a Sobol sequence, shifted by the seed. The shift keeps the sequence even."""
    from scipy.stats.qmc import Sobol

    exponent = int(np.ceil(np.log2(max(needed, 1) * TRIES)))
    units = Sobol(DIMENSIONS, scramble=False).random_base2(exponent)
    shifted = (units + np.random.default_rng(seed).random(DIMENSIONS)) % 1
    return (family.product(row) for row in shifted.tolist())
