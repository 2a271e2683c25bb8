"""A guess at the time of a configuration, only to order candidates before any of them is measured.

Waves of iterations on one side, compulsory traffic on the other. The rates are an H200's, rounded; what counts is that
tiles which fill no wave, tiles with too little reuse, and pipelines that are too short come late.
"""

from __future__ import annotations

from tunesmith.problems.gemm import Gemm, GemmOperation
from tunesmith.records import Configuration, Problem, Target

from .kinds import PRODUCT_BYTES, ROW_BYTES
from .launch import sides_of
from .schedule import SUM_BYTES, WgmmaSchedule
from .shape import WgmmaShape

CLOCK = 1.6e9
"""Cycles a second under a full load, which the power limit slows."""
LATENCY = 1.0e-6
"""Seconds from asking for a tile to having it, from memory that is busy."""
MEMORY_RATE, CACHE_RATE = 4.2e12, 7.7e12
"""Bytes a second from memory and from the L2 cache, for all multiprocessors together. Of 1792 x 1280 x 4096, tiles of
128 x 160 and of 128 x 192 without a cluster were measured to take the second; with one, which halves what one side
fetches, they took as long (2026-11-22), so it may not be what bounds them."""
EPILOGUE_RATE = 6.0e10
"""Bytes a second that one multiprocessor writes while it multiplies nothing."""
WAIT = 100.0
"""Cycles between one stage's products and the next one's, which warp groups fill for each other."""
UNHIDDEN = 0.1
"""How much of the traffic is felt behind the products: it takes power and shared memory's time too."""
LAUNCH = 3.0e-6
"""Seconds for a launch."""


def seconds(config: Configuration, problem: Problem, target: Target) -> float:
    gemm, shape = Gemm.of(problem), WgmmaShape.of(config, problem.type, target.local_memory_bytes)
    schedule = WgmmaSchedule.of(config, shape, gemm, target.compute_units)
    working = schedule.busiest * iteration_seconds(shape, schedule.grid * shape.cluster, target.compute_units)
    finishing = -(-schedule.alone // schedule.grid) * _writing(shape, shape.dest_bytes)
    if schedule.shares:
        # Somebody writes sums and somebody else reads them, beside the tile that comes of it.
        finishing += -(-schedule.shares // schedule.grid) * _writing(shape, 2 * SUM_BYTES + shape.dest_bytes)
    floor = GemmOperation().bytes(problem) / MEMORY_RATE
    sides = sides_of(gemm, shape, 0).values()
    copying = sum(LAUNCH + 2 * side.copy.bytes / MEMORY_RATE for side in sides if side.copy)
    return copying + LAUNCH + max(floor, working + finishing)


def iteration_seconds(shape: WgmmaShape, work_groups: int, compute_units: int) -> float:
    """One stage of each: its products and those of others on the multiprocessor, its way through the cache, or its
    share of the time that a fetch takes."""
    products = ROW_BYTES // PRODUCT_BYTES * shape.warp_groups * product_cycles(shape.columns)
    cycles = products * -(-work_groups // compute_units) + WAIT / shape.warp_groups
    traffic = work_groups * shape.fetched_bytes / CACHE_RATE
    return max(cycles / CLOCK, traffic, LATENCY / max(1, shape.stages)) + UNHIDDEN * traffic


def product_cycles(columns: int) -> float:
    """Cycles of one instruction: 64 x columns x 32 bytes, at the tensor cores' rate or at that of shared memory, which
    gives 128 bytes a cycle and holds both operands. The same for all types.

    Source: 989 TFLOP/s of half precision on 132 multiprocessors at 1.83 GHz are 4096 operations a cycle each.
    """
    return max(columns / 2, (64 + columns) * PRODUCT_BYTES / 128)


def _writing(shape: WgmmaShape, element_bytes: int) -> float:
    return shape.rows * shape.columns * element_bytes / EPILOGUE_RATE
