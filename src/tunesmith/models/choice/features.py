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
from tunesmith.kernels.gemm.cuda.wgmma.shape import PARTS_OF_A_CLUSTER
from tunesmith.models.intensity.policies.mappings import mapping_of
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.problems.gemm import DATA_TYPES
from tunesmith.records import Problem, Solution, Target, Value

Floats = NDArray[np.float64]

PRODUCT_FEATURES = (
    *("log m", "log n", "log k", "log batch", "log shorter side", "log intensity", "log floor"),
    *("log operand bytes", "log result bytes", "align a", "align b", "align d", "least alignment"),
    *("transposed a", "transposed b"),
)
"""Features of a product alone, in the order of `product_features`."""
PAIR_FEATURES = (
    *("log groups", "log waves", "log iterations", "arithmetic", "traffic", "latency", "memory", "sums", "copies"),
    *("estimate", "over best estimate", "wave share", "edge m", "edge n", "edge k"),
)
"""Features of a product with a solution, in the order of `pair_features`."""
LOGARITHMS = 11
"""The first so many of PAIR_FEATURES are binary logarithms."""
MOST_RESIDENT, UNIT_REGISTERS, SUM_BYTES, ALIGNED_BYTES = 8, 65536, 4, 128
MOST_SHARES = 2
"""The most that a compute unit takes of the cache's rate while others are idle, in multiples of its equal share."""
STAGES = 4.0
"""The stages of a family that does not tell them, and of one that takes as many as fit."""
VENDOR_TILE = (128.0, 128.0, 64.0, 1.0)
"""The tile and the parts of K of a library that does not tell its own."""


@dataclass(frozen=True)
class SolutionNumbers:
    """The numbers of solutions that do not depend on the product, an entry for each solution.

    `m`, `n` and `depth` are the tile, `elements` and `stage` its multiply-adds and fetched elements in an iteration.
    `parts` are the parts of K, and a cluster computes `along_k` parts of each; 0 are as many as fill the device. `grid`
    has the work-groups of stream-K or 0, and `streams` whether there are any. `resident` is how many work-groups a
    compute unit runs at once.
    `stages` are the tiles that are fetched ahead, in all of them. `has_tile` is false for the vendor's library.
    """

    kernels: tuple[str, ...]
    has_tile: NDArray[np.bool_]
    m: Floats
    n: Floats
    depth: Floats
    parts: Floats
    along_k: Floats
    grid: Floats
    resident: Floats
    stages: Floats
    elements: Floats
    stage: Floats
    streams: bool

    @staticmethod
    def of(solutions: Sequence[Solution], target: Target) -> SolutionNumbers:
        tiles = [_tile_of(solution, target) for solution in solutions]
        has_tile, m, n, depth, parts, along_k, grid, resident, stages = np.array(tiles).reshape(-1, 9).T
        derived = m * n * depth, (m + n) * depth, bool(grid.any())
        kernels = tuple(solution.kernel for solution in solutions)
        return SolutionNumbers(
            kernels, has_tile > 0, m, n, depth, parts, along_k, grid, resident, resident * stages, *derived
        )


def _tile_of(solution: Solution, target: Target) -> tuple[float, ...]:
    config = solution.configuration
    element_bytes = np.dtype(DATA_TYPES[solution.type.fields.word("DataType")].dtype).itemsize
    values: Mapping[str, Value] = {**config, **KERNELS[solution.kernel].derived(config)}
    tile = values.get("MacroTile")
    if not (isinstance(tile, tuple) and len(tile) == 2):
        return (0.0, *VENDOR_TILE, 1.0, 0.0, 1.0, STAGES)
    m, n = float(tile[0]), float(tile[1])  # type: ignore[arg-type]
    depth = _number(values, "DepthU", 0) or _number(values, "DepthBytes", 64 * element_bytes) / element_bytes
    stage_bytes = (m + n) * depth * element_bytes * _number(values, "NumStages", 1)
    fit = min(target.local_memory_bytes // stage_bytes, UNIT_REGISTERS // (m * n), MOST_RESIDENT)
    resident = max(1.0, fit) if "NumStages" in values and values.get("Schedule") != "Persistent" else 1.0
    grid = max(0.0, _number(values, "StreamKGrid", 0))
    stages = _number(values, "NumStages", 0) or _number(values, "Stages", 0) or STAGES
    parts = 0.0 if values.get("Schedule") == "FillK" else max(1.0, _number(values, "GlobalSplitU", 1))
    return (1.0, m, n, depth, parts, _number(values, "ClusterParts", 1), grid, resident, stages)


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
    alignments = [
        _alignment(size) for size in (gemm.lda * element, gemm.ldb * element, gemm.ldd * situation.dest_bytes)
    ]
    return [
        *(m, n, k, math.log2(gemm.batch), min(m, n)),
        math.log2(2.0 * gemm.m * gemm.n * gemm.k * gemm.batch / (operands + result)),
        *(math.log2(product.floor), math.log2(operands), math.log2(result)),
        *alignments,
        min(alignments),
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
    # 0 parts are as many as fill the device.
    filling = np.clip(units // tiles, 1.0, np.ceil(gemm.k / s.depth))
    parts = np.where(s.parts > 0, s.parts, filling)
    joint = np.where(
        s.along_k > 0, s.along_k, np.clip(units // (tiles * parts), PARTS_OF_A_CLUSTER[0], PARTS_OF_A_CLUSTER[-1])
    )
    groups = tiles * parts * joint
    depth = s.depth * parts * joint
    iterations = np.ceil(gemm.k / depth)
    steps = iterations
    if s.streams:
        steps = np.where(s.grid > 0, groups * iterations / np.maximum(s.grid, 1), iterations)
        groups = np.where(s.grid > 0, s.grid, groups)
    waves = groups / (units * s.resident)
    in_turn = np.ceil(groups / units) * steps
    arithmetic = in_turn * s.elements * (2.0 * units / product.peak)
    shares = np.maximum(np.minimum(groups, units), units / MOST_SHARES)
    traffic = in_turn * s.stage * shares * (element / chip.cache_rate)
    latency = in_turn * chip.latency / s.stages
    sums = np.where(parts > 1, parts, 0.0) * (2.0 * SUM_BYTES * gemm.m * gemm.n * gemm.batch / chip.memory_rate)
    copies = _copies(product, s)
    longest = np.maximum(np.maximum(arithmetic, traffic), product.memory)
    estimate = chip.launch + longest + sums + copies + steps * (chip.latency / 8)
    # The best own solution stands for what is possible, and for a library that does not tell its tile.
    best = float(estimate[s.has_tile].min()) if s.has_tile.any() else product.floor
    estimate = np.where(s.has_tile, estimate, best)
    floor = product.floor
    rows = np.empty((len(groups), len(PAIR_FEATURES)))
    times: tuple[Floats | float, ...] = (arithmetic, traffic, latency, product.memory)
    with_launch = (1 + sums / floor, 1 + copies / floor, estimate / floor, estimate / best)
    for index, values in enumerate((groups, waves, steps, *(time / floor for time in times), *with_launch)):
        rows[:, index] = values
    np.log2(rows[:, :LOGARITHMS], out=rows[:, :LOGARITHMS])
    rows[:, LOGARITHMS] = waves / np.ceil(waves)
    rows[:, LOGARITHMS + 1] = gemm.m / (across_m * s.m)
    rows[:, LOGARITHMS + 2] = gemm.n / (across_n * s.n)
    rows[:, LOGARITHMS + 3] = gemm.k / (iterations * depth)
    return rows


def _copies(product: ProductNumbers, solutions: SolutionNumbers) -> Floats:
    """Seconds for the operands that a family copies before it multiplies."""
    seconds = {}
    chip = product.situation.chip
    for kernel in dict.fromkeys(solutions.kernels):
        mapping = mapping_of(kernel)
        copied = mapping.copied_bytes(product.situation) if mapping else ()
        seconds[kernel] = sum(chip.launch + 2 * size / chip.memory_rate for size in copied)
    return np.array([seconds[kernel] for kernel in solutions.kernels])
