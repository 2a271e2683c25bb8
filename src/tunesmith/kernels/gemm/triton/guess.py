"""A guess at the time of a configuration, only to order candidates before any of them is measured."""

from __future__ import annotations

import numpy as np

from tunesmith.kernels.gemm.stream_k import ceil_div
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Target

from . import parameters as p
from .shape import TritonShape

FLOPS_PER_UNIT = {"float32": 3e12, "float16": 6e12, "bfloat16": 6e12}
FLOPS_PER_UNIT |= dict.fromkeys(("int8", "float8_e4m3fn", "float8_e5m2"), 1.2e13)
SLOWER = {"tf32": 1.0, "tf32x3": 0.33, "ieee": 0.1}
"""The relative rate of float32 products, by InputPrecision."""
BYTES_PER_SECOND, CACHED_BYTES_PER_UNIT = 4e12, 8e10
"""The rate of the device's memory, and of its cache for one compute unit; Hopper's order of magnitude only."""
LAUNCH, FILL, LOADS_BY_WORK_ITEMS = 2.5e-6, 1e-6, 0.75
"""Seconds of a launch, seconds until the first stages are filled, and the relative rate of the tensor cores if
work-items load the operands."""
PARTIAL = 2
"""The time to store a tile's sums, in times to store a tile of D."""
OVERHEAD = 40
"""Rows and columns of a tile whose overheads take as long as its products."""


def seconds(shape: TritonShape, gemm: Gemm, target: Target) -> float:
    """The time of whole waves of whole tiles: an iteration takes as long as its products or its loads, and each tile is
    stored once."""
    element, dest = np.dtype(gemm.dtype).itemsize, np.dtype(gemm.dest).itemsize
    units = max(1, target.compute_units)
    rate = FLOPS_PER_UNIT.get(gemm.dtype, 1e12)
    if gemm.dtype == "float32":
        rate *= SLOWER.get(shape.precision, 1.0)
    side = 2 * shape.m * shape.n / (shape.m + shape.n)
    rate *= side / (side + OVERHEAD) * (1.0 if shape.loads_by_tma else LOADS_BY_WORK_ITEMS)
    iteration = max(2.0 * shape.elements * shape.depth / rate, shape.stage_bytes(element) / CACHED_BYTES_PER_UNIT)
    store = shape.elements * dest / CACHED_BYTES_PER_UNIT
    iterations, tiles = _busiest(shape, gemm, units)
    partial = 2 * shape.workspace(gemm) / BYTES_PER_SECOND
    fills = 1 if shape.schedule != p.DATA_PARALLEL else tiles
    busiest_unit = iterations * iteration + tiles * store + fills * FILL
    traffic = gemm.batch * ((gemm.m + gemm.n) * gemm.k * element + gemm.m * gemm.n * dest * (2 if gemm.beta else 1))
    launches = 2 if shape.splits_k else 1
    return launches * LAUNCH + max(busiest_unit, traffic / BYTES_PER_SECOND) + partial


def _busiest(shape: TritonShape, gemm: Gemm, units: int) -> tuple[int, int]:
    """Iterations and stores of the compute unit with the most work."""
    tiles, iterations = shape.tiles(gemm), shape.iterations(gemm)
    if shape.streams and shape.grid > 0:
        schedule = shape.streamed(gemm)
        rounds = ceil_div(shape.grid, units)
        return rounds * schedule.busiest, rounds * (ceil_div(schedule.alone, shape.grid) + PARTIAL)
    if shape.splits_k:
        waves = ceil_div(tiles * shape.splits, units)
        return waves * ceil_div(iterations, shape.splits), waves * PARTIAL
    waves = ceil_div(tiles, units)
    return waves * iterations, waves
