"""A guess at the time of a configuration, only to order candidates before any of them is measured.

It is the larger of two times: waves of iterations, and compulsory traffic. The rates are an H200's, rounded. Tiles that
do not fill a wave, tiles with too little reuse, and pipelines that are too short must come late.
"""

from __future__ import annotations

from tunesmith.problems.gemm import Gemm, GemmOperation
from tunesmith.records import Configuration, Problem, Target

from .launch import sides_of
from .operand_types import PRODUCT_BYTES, ROW_BYTES
from .schedule import WgmmaSchedule
from .shape import SUM_BYTES, WgmmaShape

CLOCK = 1.6e9
"""Cycles a second under full load, where the power limit lowers the clock."""
LATENCY = 1.0e-6
"""Seconds from the request of a tile to its arrival, from memory that is busy."""
MEMORY_RATE, CACHE_RATE = 4.2e12, 7.7e12
"""Bytes a second from memory and from the L2 cache, for all multiprocessors together. Of 1792 x 1280 x 4096, tiles of
128 x 160 and of 128 x 192 without a cluster were measured to reach the rate of the cache. With clusters of two, which
halve what one side fetches, they took as long (2026-11-22), when a cluster cost a microsecond more than it does now."""
EPILOGUE_RATE = 6.0e10
"""Bytes a second that one multiprocessor writes while it multiplies nothing."""
SENDING_SPEEDUP = 4.0
"""How much faster sums go to another work-group of a cluster than to memory; a guess."""
WAIT = 100.0
"""Cycles between the products of one stage and of the next, which other warp groups fill."""
UNHIDDEN = 0.1
"""The part of the traffic's time that is added to the products' time: traffic takes power and shared memory too."""
LAUNCH = 3.0e-6
"""Seconds for a launch."""


def seconds(config: Configuration, problem: Problem, target: Target) -> float:
    gemm, shape = Gemm.of(problem), WgmmaShape.of(config, problem.type, target.local_memory_bytes)
    schedule = WgmmaSchedule.of(config, shape, gemm, target.compute_units)
    working = schedule.busiest * iteration_seconds(shape, schedule.running * schedule.cluster, target.compute_units)
    # One work-group writes the sums of a share, another reads them and writes the tile.
    written = schedule.turns * shape.dest_bytes + schedule.share_turns * (2 * SUM_BYTES + shape.dest_bytes)
    finishing = _writing(shape, written) / schedule.cluster_parts
    if schedule.is_joint:
        finishing += (schedule.turns + schedule.share_turns) * _writing(shape, SUM_BYTES) / SENDING_SPEEDUP
    floor = GemmOperation().bytes(problem) / MEMORY_RATE
    sides = sides_of(gemm, shape, 0).values()
    copying = sum(LAUNCH + 2 * side.copy.bytes / MEMORY_RATE for side in sides if side.copy)
    return copying + LAUNCH + max(floor, working + finishing)


def iteration_seconds(shape: WgmmaShape, work_groups: int, compute_units: int) -> float:
    """Seconds of one stage of every work-group: the longest of the products on a multiprocessor, the traffic through
    the cache, and a stage's share of a fetch's latency."""
    products = ROW_BYTES // PRODUCT_BYTES * shape.warp_groups * product_cycles(shape.columns)
    cycles = products * -(-work_groups // compute_units) + WAIT / shape.warp_groups
    traffic = work_groups * shape.fetched_bytes / CACHE_RATE
    return max(cycles / CLOCK, traffic, LATENCY / max(1, shape.stages)) + UNHIDDEN * traffic


def product_cycles(columns: int) -> float:
    """Cycles of one instruction: 64 x columns x 32 bytes, at the tensor cores' rate or at the rate of shared memory.

    Shared memory holds both operands and gives 128 bytes a cycle. The cycles are the same for all types.

    Source: 989 TFLOP/s of half precision on 132 multiprocessors at 1.83 GHz are 4096 operations a cycle each.
    """
    return max(columns / 2, (64 + columns) * PRODUCT_BYTES / 128)


def _writing(shape: WgmmaShape, element_bytes: int) -> float:
    return shape.rows * shape.columns * element_bytes / EPILOGUE_RATE
