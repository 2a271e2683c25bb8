"""What the GEMM families for CUDA devices share: the macro tile, and rejections by the device's limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.kernels.cuda_limits import MOST_WORK_GROUPS, REGISTERS_PER_BLOCK
from tunesmith.problems.gemm import Gemm
from tunesmith.records import CompiledFacts, Configuration, Problem, Rejection, Target, Value
from tunesmith.spaces import Parameter

from .launching import allocations
from .parameters import DEPTH_U, LOOP_UNROLL, thread_tile, work_group

DEFAULT_DEPTH = 8
"""DepthU if the configuration gives neither DepthU nor LoopUnroll, as in the other families."""

GRID_LIMIT_X, _, GRID_LIMIT_Z = MOST_WORK_GROUPS

LONGEST = 2**31 - 2**12
"""The largest size along one dimension: with a tile added, it still fits into an int32."""

MOST_SPILLED_BYTES = 1024
"""The most bytes that a work-item may spill. A program with more spends its time on its own stack (Triton's ieee dot at
128x128: 4.6 KB)."""


def tile_parameters() -> tuple[Parameter, ...]:
    return (
        work_group((16, 16, 1), (8, 8, 1), (16, 8, 1), (32, 8, 1)),
        thread_tile((4, 4), (8, 4), (8, 8)),
        replace(DEPTH_U, values=(0, 8, 16, 32, 64)),
        LOOP_UNROLL,
    )


@dataclass(frozen=True, slots=True)
class BlockTile:
    """The macro tile: work-items of a work-group and elements of each along M and N, and `depth` steps along K between
    two loads from memory."""

    items_m: int
    items_n: int
    local_split: int
    thread_m: int
    thread_n: int
    depth: int

    @staticmethod
    def of(config: Configuration) -> BlockTile:
        items_m, items_n, local_split = config.integers("WorkGroup")
        thread_m, thread_n = config.integers("ThreadTile")
        depth = config.integer("DepthU") or config.integer("LoopUnroll") or DEFAULT_DEPTH
        return BlockTile(items_m, items_n, local_split, thread_m, thread_n, depth)

    @property
    def items(self) -> int:
        return self.items_m * self.items_n

    @property
    def m(self) -> int:
        return self.items_m * self.thread_m

    @property
    def n(self) -> int:
        return self.items_n * self.thread_n

    def operand_bytes(self, dtype: str) -> int:
        """Bytes of shared memory for one tile of A and one tile of B."""
        return (self.m + self.n) * self.depth * np.dtype(dtype).itemsize

    def count(self, gemm: Gemm) -> int:
        """Macro tiles that cover one matrix D."""
        return -(-gemm.m // self.m) * -(-gemm.n // self.n)

    def derived(self) -> dict[str, Value]:
        return {"MacroTile": (self.m, self.n), "DepthU": self.depth, "WorkGroupSize": self.items}


def wrong_device(target: Target) -> Iterator[Rejection]:
    if target.api != "CUDA":
        yield Rejection("device API", f"needs a CUDA device, {target.name} is reached by {target.api}")


def wrong_work_group(tile: BlockTile, target: Target) -> Iterator[Rejection]:
    if tile.local_split != 1:
        yield Rejection("local split", f"{tile.local_split} work-items cannot share an element of D in this family")
    if tile.items > target.max_work_group_size:
        yield Rejection("work-group size", f"{tile.items} work-items, the device allows {target.max_work_group_size}")


def wrong_size(problem: Problem, groups_x: int, groups_z: int, workspace: int, target: Target) -> Iterator[Rejection]:
    """Rejections of grids and buffers that the device does not support, and of sizes beyond 32-bit integers."""
    if (longest := max(problem.sizes)) > LONGEST:
        yield Rejection("index range", f"a size of {longest}, at most {LONGEST}")
    if groups_x > GRID_LIMIT_X:
        yield Rejection("grid", f"{groups_x} work-groups, a launch has at most {GRID_LIMIT_X}")
    if groups_z > GRID_LIMIT_Z:
        yield Rejection("grid", f"batch times GlobalSplitU is {groups_z}, a launch has at most {GRID_LIMIT_Z}")
    arrays = allocations(problem, workspace)
    largest = max(arrays, key=lambda name: arrays[name])
    if arrays[largest] > target.max_allocation_bytes:
        have = target.max_allocation_bytes
        yield Rejection("maximum allocation", f"{largest} has {arrays[largest]} bytes, the device allows {have}")
    if (total := sum(arrays.values())) > target.global_memory_bytes:
        yield Rejection("device memory", f"{total} bytes in all, the device has {target.global_memory_bytes}")


def useless_program(fact: CompiledFacts, items: int) -> Iterator[Rejection]:
    """Rejections of programs whose registers do not fit into the register file, or that spill too much."""
    if fact.registers and fact.registers * items > REGISTERS_PER_BLOCK:
        need = f"{fact.registers} registers for each of {items} work-items"
        yield Rejection("registers", f"{need}, a work-group has {REGISTERS_PER_BLOCK}")
    if fact.spill_bytes and fact.spill_bytes > MOST_SPILLED_BYTES:
        yield Rejection(
            "spills", f"{fact.spill_bytes} bytes of a work-item live in memory, {MOST_SPILLED_BYTES} is too slow"
        )
