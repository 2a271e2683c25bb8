"""Metrics of a matrix product by which a rule can decide: M N, M N K, arithmetic intensity, waves of tiles.

There are two units of arithmetic intensity. IREE's rule uses FLOP per element, for the elements that the product reads
and writes. The roofline uses FLOP per byte (Williams, Waterman and Patterson, Communications of the ACM 52, 2009). A
device that computes R FLOP in the time that memory takes for a byte is bound by arithmetic above R, its ridge, and by
memory below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` products of M x K by K x N: a GEMM, or the implicit one of a convolution, whose groups are the batch.

    `operand_bytes` is the size of an element of A or B, `result_bytes` that of an element of D.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    operand_bytes: float = 4.0
    result_bytes: float = 4.0

    def __post_init__(self) -> None:
        """Raises ValueError for a size below one."""
        if min(self.m, self.n, self.k, self.batch) < 1:
            raise ValueError(f"a product of {self.m} x {self.n} x {self.k}, {self.batch} times, has nothing to do")

    @property
    def mn(self) -> int:
        """Elements of one result."""
        return self.m * self.n

    @property
    def mnk(self) -> int:
        """Multiplications of one product."""
        return self.mn * self.k

    @property
    def flops(self) -> float:
        """FLOP of the whole batch."""
        return 2.0 * self.mnk * self.batch

    @property
    def bytes(self) -> float:
        """Memory traffic of the whole batch if every operand is read once and every result is written once."""
        return self.batch * (self.operand_bytes * (self.m + self.n) * self.k + self.result_bytes * self.mn)

    @property
    def intensity(self) -> float:
        """FLOP per element of A, B and D."""
        return 2 * self.mnk / (self.mn + self.n * self.k + self.m * self.k)

    @property
    def intensity_of_bytes(self) -> float:
        """FLOP per byte of A, B and D."""
        return self.flops / self.bytes

    def of_ridge(self, ridge: float) -> float:
        """Intensity in multiples of the device's ridge, both in FLOP per byte."""
        return self.intensity_of_bytes / ridge

    def tiles(self, rows: int, columns: int) -> int:
        """Macro tiles of the whole batch."""
        return math.ceil(self.m / rows) * math.ceil(self.n / columns) * self.batch

    def waves(self, rows: int, columns: int, units: int) -> float:
        """Macro tiles divided by compute units. A fraction means a last wave that is not full."""
        return self.tiles(rows, columns) / units


REFERENCE_TILE = (128, 128)
"""Rows and columns of the macro tile for counting waves if no kernel is named."""

Metric = Callable[[Product, float, int], float]
"""A function of a product, a ridge in FLOP per byte, and a number of compute units."""

METRICS: dict[str, Metric] = {
    "mn": lambda product, ridge, units: float(product.mn),
    "mnk": lambda product, ridge, units: float(product.mnk),
    "intensity": lambda product, ridge, units: product.intensity,
    "ridges": lambda product, ridge, units: product.of_ridge(ridge),
    "waves": lambda product, ridge, units: product.waves(*REFERENCE_TILE, units),
}
"""The metrics by name. A rule sorts products by one of them, from small to large."""
