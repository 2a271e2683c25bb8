"""A guess at the time of a configuration, only to order candidates before any of them is measured.

Waves of iterations on one side, compulsory traffic on the other. The rates are an H200's, rounded; what counts is that
tiles which fill no wave, tiles with too little reuse, and pipelines that are too short come late.
"""

from __future__ import annotations

from tunesmith.problems.gemm import Gemm, GemmOperation
from tunesmith.records import Configuration, Problem, Target

from .kinds import PRODUCT_BYTES, ROW_BYTES
from .launch import sides_of
from .schedule import SUM_BYTES, Schedule
from .shape import Shape

CLOCK = 1.6e9
"""Cycles a second under a full load, which the power limit slows."""
LATENCY = 1.0e-6
"""Seconds from asking for a tile to having it, from memory that is busy."""
MEMORY_RATE, CACHE_RATE = 4.2e12, 1.0e13
"""Bytes a second from memory and from the L2 cache, for all multiprocessors together. A product of 4096 x 4096 x 4096
in tiles of 256 x 128 was measured to take the second at 8.5e12."""
EPILOGUE_RATE = 6.0e10
"""Bytes a second that one multiprocessor writes while it multiplies nothing."""
WAIT = 100.0
"""Cycles between one stage's products and the next one's, which warp groups fill for each other."""
UNHIDDEN = 0.1
"""How much of the traffic is felt behind the products: it takes power and shared memory's time too."""
LAUNCH, FLAGS = 3.0e-6, 2.0e-6
"""Seconds for a launch, and for lowering flags before it."""


def seconds(config: Configuration, problem: Problem, target: Target) -> float:
    gemm, shape = Gemm.of(problem), Shape.of(config, problem.type, target.local_memory_bytes)
    schedule = Schedule.of(config, shape, gemm, target.compute_units)
    working = schedule.busiest * iteration_seconds(shape, schedule.grid * shape.cluster)
    finishing = -(-schedule.alone // schedule.grid) * _writing(shape, shape.dest_bytes)
    if schedule.shares:
        # Somebody writes sums and somebody else reads them, beside the tile that comes of it.
        finishing += -(-schedule.shares // schedule.grid) * _writing(shape, 2 * SUM_BYTES + shape.dest_bytes)
    floor = GemmOperation().bytes(problem) / MEMORY_RATE
    sides = sides_of(gemm, shape, 0).values()
    copying = sum(LAUNCH + 2 * side.copy.bytes / MEMORY_RATE for side in sides if side.copy)
    return copying + LAUNCH + (FLAGS if schedule.shares else 0) + max(floor, working + finishing)


def iteration_seconds(shape: Shape, work_groups: int) -> float:
    """One stage: its products, its way through the cache, or its share of the time that a fetch takes."""
    cycles = ROW_BYTES // PRODUCT_BYTES * shape.warp_groups * product_cycles(shape.columns) + WAIT / shape.warp_groups
    traffic = work_groups * shape.fetched_bytes / CACHE_RATE
    return max(cycles / CLOCK, traffic, LATENCY / max(1, shape.stages)) + UNHIDDEN * traffic


def product_cycles(columns: int) -> float:
    """Cycles of one instruction: 64 x columns x 32 bytes, at the tensor cores' rate or at that of shared memory, which
    gives 128 bytes a cycle and holds both operands. The same for all types.

    Source: 989 TFLOP/s of half precision on 132 multiprocessors at 1.83 GHz are 4096 operations a cycle each.
    """
    return max(columns / 2, (64 + columns) * PRODUCT_BYTES / 128)


def _writing(shape: Shape, element_bytes: int) -> float:
    return shape.rows * shape.columns * element_bytes / EPILOGUE_RATE
