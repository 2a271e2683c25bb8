"""A product beside each of a logic's solutions, as numbers: what a choice model predicts times from.

All times are logarithms, relative to the product's `floor`: a launch, and the longer of its arithmetic at the chip's
peak and its traffic at the memory's rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels import KERNELS
from tunesmith.models.intensity.policies.mappings import mapping_of
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.records import Problem, Solution, Target, Value

Floats = NDArray[np.float64]

PRODUCT_FEATURES = (
    *("log m", "log n", "log k", "log batch", "log tokens side", "log intensity", "log floor"),
    *(
        "log operand bytes",
        "log result bytes",
        "align a",
        "align b",
        "align d",
        "align k",
        "transposed a",
        "transposed b",
    ),
)
"""Features of a product alone, in the order of `product_features`."""
PAIR_FEATURES = (
    *("log groups", "log waves", "wave share", "edge m", "edge n", "edge k", "log iterations"),
    *("arithmetic", "traffic", "memory", "sums", "copies", "estimate", "over best estimate"),
)
"""Features of a product with a solution, in the order of `pair_features`."""
MOST_RESIDENT, UNIT_REGISTERS, SUM_BYTES, ALIGNED_BYTES = 8, 65536, 4, 128
VENDOR_TILE = (128, 128)
"""The tile of a library that does not tell its own."""


@dataclass(frozen=True)
class SolutionNumbers:
    """The numbers of solutions that do not depend on the product, an entry for each solution.

    `m`, `n` and `depth` are the tile, `parts` the parts of K, `grid` the work-groups of stream-K or 0, `resident` how
    many work-groups a compute unit runs at once. `has_tile` is false for the vendor's library.
    """

    kernels: tuple[str, ...]
    has_tile: NDArray[np.bool_]
    m: Floats
    n: Floats
    depth: Floats
    parts: Floats
    grid: Floats
    resident: Floats

    @staticmethod
    def of(solutions: Sequence[Solution], target: Target, element_bytes: int) -> SolutionNumbers:
        tiles = [_tile_of(solution, target, element_bytes) for solution in solutions]
        columns = np.array(tiles, dtype=float).reshape(len(tiles), 7).T
        kernels = tuple(solution.kernel for solution in solutions)
        return SolutionNumbers(kernels, columns[0] > 0, *columns[1:])


def _tile_of(solution: Solution, target: Target, element_bytes: int) -> tuple[float, ...]:
    config = solution.configuration
    values: Mapping[str, Value] = {**config, **KERNELS[solution.kernel].derived(config)}
    tile = values.get("MacroTile")
    if not (isinstance(tile, tuple) and len(tile) == 2):
        return (0.0, *VENDOR_TILE, 64.0, 1.0, 0.0, 1.0)
    m, n = float(tile[0]), float(tile[1])  # type: ignore[arg-type]
    depth = _number(values, "DepthU", 0) or _number(values, "DepthBytes", 64 * element_bytes) / element_bytes
    stage_bytes = (m + n) * depth * element_bytes * _number(values, "NumStages", 1)
    fit = min(target.local_memory_bytes // stage_bytes, UNIT_REGISTERS // (m * n), MOST_RESIDENT)
    resident = max(1.0, fit) if "NumStages" in values and values.get("Schedule") != "Persistent" else 1.0
    grid = max(0.0, _number(values, "StreamKGrid", 0))
    return (1.0, m, n, depth, max(1.0, _number(values, "GlobalSplitU", 1)), grid, resident)


def _number(values: Mapping[str, Value], name: str, default: float) -> float:
    value = values.get(name, default)
    return float(value) if isinstance(value, (int, float)) else default


@dataclass(frozen=True, slots=True)
class ProductNumbers:
    """A product on a chip: its situation, and its floor in seconds."""

    situation: PolicyInput
    floor: float
    memory: float
    peak: float

    @staticmethod
    def of(problem: Problem, target: Target) -> ProductNumbers:
        situation = PolicyInput.of(problem, target)
        gemm, chip = situation.gemm, situation.chip
        operands = (gemm.m * gemm.k + gemm.k * gemm.n) * situation.element_bytes
        memory = gemm.batch * (operands + gemm.m * gemm.n * situation.dest_bytes) / chip.memory_rate
        peak = chip.rate(situation.arithmetic)
        arithmetic = 2.0 * gemm.m * gemm.n * gemm.k * gemm.batch / peak
        return ProductNumbers(situation, chip.launch + max(memory, arithmetic), memory, peak)


def product_features(product: ProductNumbers) -> list[float]:
    """The values of PRODUCT_FEATURES."""
    situation = product.situation
    gemm, element = situation.gemm, situation.element_bytes
    operands = gemm.batch * (gemm.m * gemm.k + gemm.k * gemm.n) * element
    result = gemm.batch * gemm.m * gemm.n * situation.dest_bytes
    m, n, k = math.log2(gemm.m), math.log2(gemm.n), math.log2(gemm.k)
    return [
        *(m, n, k, math.log2(gemm.batch), min(m, n)),
        math.log2(2.0 * gemm.m * gemm.n * gemm.k * gemm.batch / (operands + result)),
        *(math.log2(product.floor), math.log2(operands), math.log2(result)),
        _alignment(gemm.lda * element),
        _alignment(gemm.ldb * element),
        _alignment(gemm.ldd * situation.dest_bytes),
        _alignment(gemm.k * element),
        *(float(gemm.transpose_a), float(gemm.transpose_b)),
    ]


def _alignment(size: int) -> float:
    return math.log2(math.gcd(size, ALIGNED_BYTES))


def pair_features(product: ProductNumbers, solutions: SolutionNumbers) -> Floats:
    """The values of PAIR_FEATURES, a row for each solution."""
    situation, s = product.situation, solutions
    gemm, chip, units, element = situation.gemm, situation.chip, situation.units, situation.element_bytes
    across_m, across_n = np.ceil(gemm.m / s.m), np.ceil(gemm.n / s.n)
    tiles = across_m * across_n * gemm.batch
    groups = np.where(s.grid > 0, s.grid, tiles * s.parts)
    iterations = np.ceil(gemm.k / (s.depth * s.parts))
    steps = np.where(s.grid > 0, tiles * iterations / groups, iterations)
    waves = groups / (units * s.resident)
    rounds = np.ceil(groups / units)
    arithmetic = rounds * steps * (2.0 * units / product.peak) * s.m * s.n * s.depth
    traffic = groups * steps * s.depth * (s.m + s.n) * (element / chip.cache_rate)
    sums = np.where(s.parts > 1, s.parts * (2.0 * SUM_BYTES * gemm.m * gemm.n * gemm.batch / chip.memory_rate), 0.0)
    copies = _copies(product, s)
    longest = np.maximum(np.maximum(arithmetic, traffic), product.memory)
    estimate = chip.launch + longest + sums + copies + steps * (chip.latency / 8)
    best = float(np.where(s.has_tile, estimate, np.inf).min(initial=np.inf))
    estimate = np.where(s.has_tile, estimate, best if math.isfinite(best) else product.floor)
    floor = product.floor
    return np.stack(
        (
            np.log2(groups),
            np.log2(waves),
            waves / np.ceil(waves),
            gemm.m / (across_m * s.m),
            gemm.n / (across_n * s.n),
            gemm.k / (iterations * s.depth * s.parts),
            np.log2(steps),
            np.log2(arithmetic / floor),
            np.log2(traffic / floor),
            np.full(len(groups), math.log2(product.memory / floor)),
            np.log2(1 + sums / floor),
            np.log2(1 + copies / floor),
            np.log2(estimate / floor),
            np.log2(estimate / min(best, estimate.max())),
        ),
        axis=1,
    )


def _copies(product: ProductNumbers, solutions: SolutionNumbers) -> Floats:
    """Seconds for the operands that a family copies before it multiplies."""
    seconds = {}
    chip = product.situation.chip
    for kernel in dict.fromkeys(solutions.kernels):
        mapping = mapping_of(kernel)
        copied = mapping.copied_bytes(product.situation) if mapping else ()
        seconds[kernel] = sum(chip.launch + 2 * size / chip.memory_rate for size in copied)
    return np.array([seconds[kernel] for kernel in solutions.kernels])
