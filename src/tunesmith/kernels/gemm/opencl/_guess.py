"""A guess at the time of a configuration, only to order candidates before any of them is measured."""

from __future__ import annotations

import math

from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem, Target

from ._schedule import Schedule

FLOPS_PER_UNIT = {"CPU": 1e11, "GPU": 4e11}
"""Single precision, one compute unit, the order of magnitude only."""
BYTES_PER_SECOND = {"CPU": 3e10, "GPU": 1.5e12}
LATENCY = {"CPU": 3e-5, "GPU": 5e-6}
"""Seconds for one launch."""


def seconds(schedule: Schedule, problem: Problem, target: Target, extra_bytes: int = 0) -> float:
    """A roofline over whole waves of whole tiles: padding and half-empty waves count as work.

    Elements a work-item loads for each multiply-add limit its rate; each macro tile reads its operands once;
    `extra_bytes` is other traffic (packing).
    """
    gemm = Gemm.of(problem)
    width = 8 if gemm.dtype == "float64" else 4
    tile0, tile1 = schedule.macro_tile
    groups = math.prod(schedule.tiles(gemm)) * gemm.batch * schedule.global_split
    waves = -(-groups // target.compute_units)
    thread0, thread1 = schedule.thread_tile
    reuse = thread0 * thread1 / (thread0 / schedule.vector + thread1)
    rate = FLOPS_PER_UNIT[target.kind] * 4 / width * reuse / (reuse + 4)
    arithmetic = waves * 2.0 * tile0 * tile1 * schedule.depth_per_split(gemm) / rate
    partial_sums = 2 * gemm.m * gemm.n * gemm.batch * schedule.global_split if schedule.global_split > 1 else 0
    traffic = width * (groups * (tile0 + tile1) * schedule.depth_per_split(gemm) + partial_sums) + extra_bytes
    launches = 2 if schedule.global_split > 1 else 1
    cached = 8  # most re-reads of a tile hit a cache
    return launches * LATENCY[target.kind] + max(arithmetic, traffic / cached / BYTES_PER_SECOND[target.kind])
