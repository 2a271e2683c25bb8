"""A device's peak and bandwidth for a data type, and where the two come from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Provenance(StrEnum):
    """Where figures of a roofline come from."""

    MEASURED = "measured"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Roofline:
    """Peak in FLOP/s for operands of `data_type` (a GEMM's letter; x is TF32), bandwidth of memory in byte/s.

    `source` says for a person who published or measured them, on what and when.

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
        """FLOP per byte from which on arithmetic, not memory, is what the device waits for."""
        return self.flops_per_second / self.bytes_per_second

    @property
    def peak(self) -> str:
        """FLOP/s as a person reads it."""
        return rate_text(self.flops_per_second)

    def attainable(self, intensity: float) -> float:
        """The most FLOP/s at an intensity in FLOP per byte."""
        return min(self.flops_per_second, intensity * self.bytes_per_second)


def rate_text(flops_per_second: float) -> str:
    """Four digits, without an exponent up to 10 PFLOP/s: `1307 TFLOP/s`, `63.96 GFLOP/s`."""
    tera = flops_per_second / 1e12
    return f"{tera:.4g} TFLOP/s" if tera >= 1 else f"{1e3 * tera:.4g} GFLOP/s"
