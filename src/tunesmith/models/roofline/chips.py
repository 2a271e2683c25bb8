"""Published figures of chips: peak rates without sparsity, memory bandwidth, compute units.

Rates are those of matrix instructions (tensor cores) if the chip has them for the type, with single-precision sums for
types below single precision. They hold at the boost clock, which a chip can seldom sustain. A measured roofline
(`tunesmith calibrate roofline`) is lower, and mostly its ridge is too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .figures import Provenance, Roofline

TERA, GIGA = 1e12, 1e9


@dataclass(frozen=True, slots=True)
class Chip:
    """A chip's figures: `tflops` by data type (a GEMM's letter; x is TF32), `gigabytes` per second, and `compute_units`
    (for NVIDIA, streaming multiprocessors). `names` are parts of the names that drivers give the device, in lower
    case."""

    name: str
    architecture: str
    names: tuple[str, ...]
    compute_units: int
    gigabytes: float
    tflops: Mapping[str, float]
    source: str

    def roofline(self, data_type: str) -> Roofline | None:
        """The roofline for a data type; None if the source has no rate for the type."""
        rate = next((rate for letters, rate in self.tflops.items() if data_type in letters.split()), None)
        if rate is None:
            return None
        return Roofline(self.name, data_type, rate * TERA, self.gigabytes * GIGA, Provenance.PUBLISHED, self.source)


_H100_SHEET = "NVIDIA H100 Tensor Core GPU Architecture white paper (2022), table 2"
_HOPPER = {"h b": 989.4, "x": 494.7, "f8 b8 i8": 1978.9, "s": 66.9, "d": 66.9}
_A100_SHEET = "NVIDIA A100 Tensor Core GPU data sheet (2021)"
_AMPERE = {"h b": 312.0, "x": 156.0, "i8": 624.0, "s": 19.5, "d": 19.5}
_CDNA3 = {"h b": 1307.4, "x": 653.7, "f8 b8 i8": 2614.9, "s d": 163.4}
_CDNA2 = {"h b i8": 191.5, "s d": 47.9}

CHIPS = (
    Chip(
        "V100 SXM2",
        "sm_70",
        ("v100-sxm2",),
        80,
        900,
        {"h": 125, "s": 15.7, "d": 7.8},
        "NVIDIA V100 Tensor Core GPU data sheet (2020)",
    ),
    Chip("A100 SXM 80 GB", "sm_80", ("a100-sxm4-80gb", "a100-sxm-80gb"), 108, 2039, _AMPERE, _A100_SHEET),
    Chip("A100 SXM 40 GB", "sm_80", ("a100-sxm4-40gb", "a100-sxm-40gb"), 108, 1555, _AMPERE, _A100_SHEET),
    Chip("A100 PCIe 80 GB", "sm_80", ("a100 80gb pcie",), 108, 1935, _AMPERE, _A100_SHEET),
    Chip("A100 PCIe 40 GB", "sm_80", ("a100-pcie-40gb",), 108, 1555, _AMPERE, _A100_SHEET),
    Chip(
        "RTX 3090",
        "sm_86",
        ("rtx 3090",),
        82,
        936,
        {"h b": 71, "x": 35.6, "i8": 284, "s": 35.6},
        "NVIDIA Ampere GA102 GPU Architecture white paper (2021)",
    ),
    Chip(
        "RTX 4090",
        "sm_89",
        ("rtx 4090",),
        128,
        1008,
        {"h b": 165.2, "x": 82.6, "f8 b8": 330.3, "i8": 660.6, "s": 82.6},
        "NVIDIA Ada GPU Architecture white paper (2022)",
    ),
    Chip(
        "L40S",
        "sm_89",
        ("l40s",),
        142,
        864,
        {"h b": 362.05, "x": 183, "f8 b8 i8": 733, "s": 91.6},
        "NVIDIA L40S data sheet (2023)",
    ),
    Chip("H100 SXM", "sm_90", ("h100 80gb hbm3", "h100 sxm"), 132, 3352, _HOPPER, _H100_SHEET),
    Chip(
        "H100 PCIe",
        "sm_90",
        ("h100 pcie",),
        114,
        2039,
        {"h b": 756, "x": 378, "f8 b8 i8": 1513, "s": 51.2, "d": 51.2},
        _H100_SHEET,
    ),
    Chip("H200 SXM", "sm_90", ("h200",), 132, 4800, _HOPPER, "NVIDIA H200 data sheet (2024); rates as of the H100 SXM"),
    Chip(
        "B200",
        "sm_100",
        ("b200",),
        148,
        8000,
        {"h b": 2250, "x": 1125, "f8 b8 i8": 4500},
        "NVIDIA HGX B200 data sheet (2024), an eighth of the system, without sparsity",
    ),
    Chip(
        "MI50",
        "gfx906",
        ("mi50",),
        60,
        1024,
        {"h": 26.5, "s": 13.3, "d": 6.6},
        "AMD Radeon Instinct MI50 data sheet (2018)",
    ),
    Chip(
        "MI100",
        "gfx908",
        ("mi100",),
        120,
        1228.8,
        {"h i8": 184.6, "b": 92.3, "s": 46.1, "d": 11.5},
        "AMD Instinct MI100 data sheet (2020)",
    ),
    Chip(
        "MI210",
        "gfx90a",
        ("mi210",),
        104,
        1638.4,
        {"h b i8": 181.0, "s d": 45.3},
        "AMD Instinct MI210 data sheet (2022)",
    ),
    Chip(
        "MI250X, one of two dies",
        "gfx90a",
        ("mi250x",),
        110,
        1638.4,
        _CDNA2,
        "AMD Instinct MI250X data sheet (2021), half of the module: programs see each die as a device",
    ),
    Chip("MI300X", "gfx942", ("mi300x",), 304, 5300, _CDNA3, "AMD Instinct MI300X data sheet (2023)"),
    Chip("MI325X", "gfx942", ("mi325x",), 304, 6000, _CDNA3, "AMD Instinct MI325X data sheet (2024)"),
    Chip(
        "MI355X",
        "gfx950",
        ("mi355x",),
        256,
        8000,
        {"h b": 2516.6, "f8 b8 i8": 5033.2, "s": 157.3, "d": 78.6},
        "AMD Instinct MI355X data sheet (2025)",
    ),
)


USUAL = {
    "gfx906": "MI50",
    "gfx908": "MI100",
    "gfx90a": "MI250X, one of two dies",
    "gfx942": "MI300X",
    "gfx950": "MI355X",
}
"""The chip that is assumed for an architecture if the driver does not name the device, as AMD's drivers do not."""

_OTHER_MODEL = r"(?! ti| d\b| laptop| nvl|[a-z0-9])"
"""Suffixes after a model's name that denote another model."""


def chip_of(name: str, architecture: str) -> Chip | None:
    """The chip that the driver's name tells; otherwise the usual chip of the architecture, with a `source` that says
    so. None if neither tells the chip."""
    if named := chip_named(name):
        return named
    code = architecture.partition(":")[0]
    usual = next((chip for chip in CHIPS if chip.name == USUAL.get(code)), None)
    return replace(usual, source=f"{usual.source}; {usual.name} is taken for {code}") if usual else None


def chip_named(name: str) -> Chip | None:
    """The chip that a driver or a person calls by this name; None if the name matches no chip or several."""
    plain = " ".join(name.lower().split())
    by_driver = [
        chip for chip in CHIPS if any(re.search(rf"(?<![a-z0-9]){part}{_OTHER_MODEL}", plain) for part in chip.names)
    ]
    by_person = [chip for chip in CHIPS if plain and chip.name.lower().startswith(plain)]
    matches = [chip for chip in CHIPS if plain == chip.name.lower()] or by_driver or by_person
    return matches[0] if len(matches) == 1 else None
