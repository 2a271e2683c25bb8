"""A guess at the time of a configuration, only to order candidates before any of them is measured."""

from __future__ import annotations

import math

from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem, Target

from .schedule import OpenCLSchedule

FLOPS_PER_UNIT = {"CPU": 1e11, "GPU": 4e11}
"""FLOP/s of one compute unit in single precision, only the order of magnitude."""
BYTES_PER_SECOND = {"CPU": 3e10, "GPU": 1.5e12}
LATENCY = {"CPU": 3e-5, "GPU": 5e-6}
"""Seconds for one launch."""


def seconds(schedule: OpenCLSchedule, problem: Problem, target: Target, extra_bytes: int = 0) -> float:
    """A roofline over whole waves of whole tiles: padding and half-empty waves count as work.

    The elements that a work-item loads for each multiply-add limit its rate. Each macro tile reads its operands once.
    `extra_bytes` is other traffic (packing).
    """
    gemm = Gemm.of(problem)
    width = 8 if gemm.dtype == "float64" else 4
    tile0, tile1 = schedule.macro_tile
    groups, steps, partial_sums = _work(schedule, gemm)
    waves = -(-groups // target.compute_units)
    thread0, thread1 = schedule.thread_tile
    reuse = thread0 * thread1 / (thread0 / schedule.vector + thread1)
    rate = FLOPS_PER_UNIT[target.kind] * 4 / width * reuse / (reuse + 4)
    arithmetic = waves * 2.0 * tile0 * tile1 * steps / rate
    traffic = width * (groups * (tile0 + tile1) * steps + 2 * partial_sums) + extra_bytes
    launches = 2 if partial_sums else 1
    cached = 8  # most re-reads of a tile hit a cache
    return launches * LATENCY[target.kind] + max(arithmetic, traffic / cached / BYTES_PER_SECOND[target.kind])


def _work(schedule: OpenCLSchedule, gemm: Gemm) -> tuple[int, int, int]:
    """Work-groups, steps along K of the work-group with most, and elements that are sums over part of K."""
    if schedule.streams:
        stream = schedule.stream(gemm)
        return stream.grid, stream.busiest * schedule.depth, stream.slots * math.prod(schedule.macro_tile)
    split, tiles = schedule.global_split, math.prod(schedule.tiles(gemm)) * gemm.batch
    sums = gemm.m * gemm.n * gemm.batch * split if split > 1 else 0
    return tiles * split, schedule.depth_per_split(gemm), sums
