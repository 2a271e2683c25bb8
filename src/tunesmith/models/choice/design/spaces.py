"""Families of products that fill a box of log sizes, with every alignment and layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.problems.gemm.listed import ListedGemm

from .draws import aligned, layout, log_uniform

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SizeBox:
    """Rows, columns, K and matrices of a batch, each log-uniform in its range. If both ends of a range are equal, the
    size is exact."""

    name: str
    m: Range
    n: Range
    k: Range
    batch: Range = (1, 1)

    def product(self, units: Sequence[float]) -> ListedGemm:
        """The product of eight numbers from 0 to 1: three sizes, three alignments, a layout, a batch."""
        ranges = (self.m, self.n, self.k)
        drawn = zip(ranges, units[:3], units[3:6], strict=True)
        m, n, k = (_size(low, high, unit, alignment) for (low, high), unit, alignment in drawn)
        trans_a, trans_b = layout(units[6])
        return ListedGemm(m, n, k, round(log_uniform(units[7], *self.batch)), trans_a, trans_b, self.name)


def _size(low: int, high: int, unit: float, alignment: float) -> int:
    return low if low == high else min(max(aligned(log_uniform(unit, low, high), alignment), low), high)


BOXES = (
    SizeBox("middle", (64, 8192), (64, 8192), (64, 8192)),
    SizeBox("few-rows", (2, 128), (256, 32768), (256, 32768)),
    SizeBox("few-columns", (256, 32768), (2, 128), (256, 32768)),
    SizeBox("large", (2048, 16384), (2048, 16384), (2048, 16384)),
    SizeBox("deep", (16, 1024), (16, 1024), (8192, 524288)),
    SizeBox("shallow", (256, 16384), (256, 16384), (1, 128)),
    SizeBox("small", (1, 512), (1, 512), (1, 2048)),
    SizeBox("one-row", (1, 1), (64, 65536), (64, 65536)),
    SizeBox("one-column", (64, 65536), (1, 1), (64, 65536)),
    # Whatever kind of product the other families leave out.
    SizeBox("any-size", (1, 65536), (1, 65536), (1, 524288)),
)

BATCHED_BOXES = (
    SizeBox("batch-middle", (16, 2048), (16, 2048), (16, 2048), (2, 1024)),
    SizeBox("batch-few-rows", (1, 16), (64, 8192), (64, 8192), (2, 1024)),
    SizeBox("batch-large", (512, 8192), (512, 8192), (512, 8192), (2, 16)),
    SizeBox("batch-small", (2, 64), (2, 64), (2, 64), (64, 65535)),
)
