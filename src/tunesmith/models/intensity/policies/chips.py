"""The figures of a chip that policies use: arithmetic and memory rates from its data sheet, rough caches and latencies.

The figures serve to rank tiles, not to predict times. The float32 rate of AMD's chips is that of their matrix
instructions, the float32 rate of NVIDIA's chips is that without tensor cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tunesmith.models.roofline.chips import CHIPS, GIGA, TERA, Chip, chip_of
from tunesmith.problems.gemm import DATA_TYPES
from tunesmith.records import Target

TF32 = "tf32"
_LETTERS = {data_type.dtype: letter for letter, data_type in DATA_TYPES.items()} | {TF32: "x"}
"""The letter of each type in `Chip.tflops`, by NumPy's name or `tf32`."""


@dataclass(frozen=True, slots=True)
class ChipFigures:
    """Rates and latencies of a chip.

    `peak` is dense FLOP/s by NumPy's name of the operands' type (`tf32` for products in TF32). `memory_rate` and
    `cache_rate` (of the last-level cache) are in bytes per second. `latency` is the seconds from requesting a tile from
    memory to having it, `launch` the seconds of a launch, `access` the seconds of a compute unit for one load or
    store of one work-item. If the chip has no data sheet with a figure, the figure is
    that of another chip of its architecture, or an estimate for its kind.
    """

    peak: Mapping[str, float]
    memory_rate: float
    cache_rate: float
    latency: float
    launch: float
    access: float = 0.0

    def rate(self, dtype: str) -> float:
        """FLOP/s of a type; the rate of float32 for a type that the table lacks."""
        return self.peak.get(dtype, self.peak["float32"])


GPU_LATENCY, GPU_LAUNCH, GPU_ACCESS = 1e-6, 3e-6, 1e-10
"""The latency and the seconds of an access were fitted on an H200 (benchmarks/recorded/gemm_bf16)."""
CPU_LATENCY, CPU_LAUNCH = 1e-8, 2e-5
"""The latency was fitted on a CPU (benchmarks/recorded/policies_cpu); it is short because caches prefetch."""
AMD_LATENCY, AMD_LAUNCH = 2e-6, 6e-6
CACHE_RATES = {"sm_80": 4.5e12, "sm_90": 1e13, "sm_100": 1.2e13, "gfx90a": 3.5e12, "gfx942": 1.2e13}
"""Bytes per second, by architecture. No data sheet has cache rates and latencies. Those of sm_90 were fixed on an H200,
with 211 products in bfloat16 (benchmarks/recorded/gemm_bf16), by their nearest measured neighbours, in the middle of a
plateau. The others are orders of magnitude."""
MEMORY_RATE, CACHE_RATE = 1e12, 3e12
"""The rates of a GPU without a data sheet, and without an entry in CACHE_RATES."""

_GPU_UNIT = {"float64": 0.2, "float32": 0.4, "float16": 1.6, "bfloat16": 1.6, "int8": 3.2}
"""TFLOP/s of one compute unit of a GPU without a data sheet: an order of magnitude."""
_CPU_UNIT = {"float64": 0.05, "float32": 0.1, "float16": 0.05, "bfloat16": 0.05, "int8": 0.05}
"""TFLOP/s of one core: 32 single-precision multiply-adds per cycle at 1.6 GHz."""


def figures_of(target: Target) -> ChipFigures:
    """The figures of the chip that the driver names; otherwise those for the target's architecture (`sm_90a` and
    `gfx90a:sramecc+` are `sm_90` and `gfx90a`); otherwise those for its kind."""
    units = max(1, target.compute_units)
    if target.kind == "CPU":
        return ChipFigures(_rates(_CPU_UNIT, units), 3e10, 3e11, CPU_LATENCY, CPU_LAUNCH)
    code = architecture_code(target.architecture)
    chip = chip_of(target.name, code) or next((chip for chip in CHIPS if chip.architecture == code), None)
    is_amd = code.startswith("gfx")
    return ChipFigures(
        MappingProxyType({**_rates(_GPU_UNIT, units), **(_published(chip) if chip else {})}),
        chip.gigabytes * GIGA if chip else MEMORY_RATE,
        CACHE_RATES.get(code, CACHE_RATE),
        AMD_LATENCY if is_amd else GPU_LATENCY,
        AMD_LAUNCH if is_amd else GPU_LAUNCH,
        GPU_ACCESS,
    )


def published_ridge(target: Target, dtype: str) -> float | None:
    """The ridge in FLOP per byte for a type (`tf32`, or NumPy's name), by the data sheet of the target's own chip. None
    if there is no data sheet, or if it has no rate for the type."""
    chip = chip_of(target.name, architecture_code(target.architecture)) if target.kind == "GPU" else None
    roofline = chip.roofline(_LETTERS[dtype]) if chip and dtype in _LETTERS else None
    return roofline.ridge if roofline else None


def architecture_code(architecture: str) -> str:
    """The architecture without feature suffixes."""
    code = architecture.partition(":")[0]
    return code if code.startswith("gfx") else code.rstrip("af")


def _rates(unit: Mapping[str, float], units: int) -> Mapping[str, float]:
    return MappingProxyType({dtype: rate * units * TERA for dtype, rate in unit.items()})


def _published(chip: Chip) -> dict[str, float]:
    """FLOP/s of a chip by NumPy's names."""
    return {
        dtype: rate * TERA
        for letters, rate in chip.tflops.items()
        for dtype, letter in _LETTERS.items()
        if letter in letters.split()
    }
