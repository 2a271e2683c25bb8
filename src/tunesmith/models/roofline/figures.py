"""A device's peak and bandwidth for a data type, with their origin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Provenance(StrEnum):
    """Where the figures of a roofline come from."""

    MEASURED = "measured"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Roofline:
    """Peak in FLOP/s for operands of `data_type` (a GEMM's letter; x is TF32), and memory bandwidth in byte/s.

    `source` tells a person who published or measured the figures, on which device and when.

    Source: Williams, Waterman and Patterson, Communications of the ACM 52 (2009), p. 65.
    """

    device: str
    data_type: str
    flops_per_second: float
    bytes_per_second: float
    provenance: Provenance
    source: str

    @property
    def ridge(self) -> float:
        """The FLOP per byte above which arithmetic, not memory, bounds the device."""
        return self.flops_per_second / self.bytes_per_second

    @property
    def peak(self) -> str:
        """Peak as text for a person."""
        return rate_text(self.flops_per_second)

    def attainable(self, intensity: float) -> float:
        """The most FLOP/s at an intensity in FLOP per byte."""
        return min(self.flops_per_second, intensity * self.bytes_per_second)


def rate_text(flops_per_second: float) -> str:
    """A rate with four digits, without an exponent up to 10 PFLOP/s: `1307 TFLOP/s`, `63.96 GFLOP/s`."""
    tera = flops_per_second / 1e12
    return f"{tera:.4g} TFLOP/s" if tera >= 1 else f"{1e3 * tera:.4g} GFLOP/s"
