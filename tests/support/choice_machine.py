"""A made-up GPU: times of a few kernels and of a vendor's library at products of several families, by a formula."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.problems.gemm import Gemm, gemm_type
from tunesmith.records import Problem, ProblemType, Solution

TARGET = known_target("sm_90")
TYPES = (gemm_type("b", transpose_a=True, transpose_b=False), gemm_type("b", transpose_b=False))
TILES = (("TritonGemm", (16, 64)), ("TritonGemm", (64, 64)), ("TritonGemm", (128, 128)), ("TritonGemm", (128, 256)))
VENDOR_TILES = ((64, 64), (128, 128), (256, 128))
PEAK, BANDWIDTH, LAUNCH = 7e14, 4e12, 3e-6
RANGES = {
    "few": ((1, 64), (512, 8192), (512, 8192)),
    "square": ((256, 4096), (256, 4096), (256, 4096)),
    "deep": ((64, 512), (64, 512), (8192, 65536)),
    "shallow": ((512, 8192), (512, 8192), (16, 128)),
}


def solutions() -> tuple[Solution, ...]:
    """Four tiles, two of them also with K in four parts, and the vendor's library, for both types."""
    return tuple(solution for kind in TYPES for solution in _of_type(kind))


def _of_type(kind: ProblemType) -> Iterator[Solution]:
    for kernel, tile in TILES:
        defaults = KERNELS[kernel].space(kind, TARGET).defaults | {"MacroTile": tile}
        yield Solution(kind, kernel, defaults)
        if max(tile) < 256:
            yield Solution(kind, kernel, defaults | {"Schedule": "SplitK", "GlobalSplitU": 4})
    yield Solution(kind, VENDOR, KERNELS[VENDOR].space(kind, TARGET).defaults)


def seconds(solution: Solution, problem: Problem) -> float:
    """Whole waves of whole tiles; the vendor takes its best tile, and is slow at odd sizes."""
    gemm = Gemm.of(problem)
    if solution.kernel == VENDOR:
        slow = 1.0 if gemm.k % 8 == 0 == gemm.m % 8 else 1.6
        return slow * min(_tiled(gemm, tile, parts) for tile in VENDOR_TILES for parts in (1, 4))
    config = solution.configuration
    return _tiled(gemm, config.integers("MacroTile"), config.integer("GlobalSplitU"))


def _tiled(gemm: Gemm, tile: Sequence[int], parts: int) -> float:
    waves = math.ceil(math.ceil(gemm.m / tile[0]) * math.ceil(gemm.n / tile[1]) * parts / TARGET.compute_units)
    side = 2 * tile[0] * tile[1] / (tile[0] + tile[1])
    computing = waves * 2 * tile[0] * tile[1] * gemm.k / parts * TARGET.compute_units / (PEAK * side / (side + 48))
    moving = 2 * (gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n) / BANDWIDTH
    adding = LAUNCH + parts * 8 * gemm.m * gemm.n / BANDWIDTH if parts > 1 else 0.0
    return LAUNCH + max(computing, moving) + adding


def matrix(count: int, seed: int = 0, names: Sequence[str] = tuple(RANGES)) -> TimeMatrix:
    """`count` products of each family, with times to a percent. Large parts of a short K do not run."""
    random = np.random.default_rng(seed)
    problems = [(_product(random, name), name) for name in names for _ in range(count)]
    every = solutions()
    times = np.array([[_time(solution, problem, random) for solution in every] for problem, _ in problems])
    return TimeMatrix(tuple(problem for problem, _ in problems), tuple(name for _, name in problems), every, times)


def _product(random: np.random.Generator, name: str) -> Problem:
    columns, rows, depth = (int(2 ** random.uniform(*np.log2(ends))) for ends in RANGES[name])
    kind = TYPES[int(random.integers(len(TYPES)))]
    aligned = [max(8, size // 8 * 8) if random.random() < 0.6 else size for size in (rows, columns, depth)]
    return Problem(kind, tuple(aligned))


def _time(solution: Solution, problem: Problem, random: np.random.Generator) -> float:
    noise = math.exp(random.normal(0, 0.01))
    if solution.type != problem.type or problem.size("K") < 64 * (solution.configuration.get("GlobalSplitU", 1) > 1):
        return math.nan
    return seconds(solution, problem) * noise
