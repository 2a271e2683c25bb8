"""What the two families launch alike: arguments, the sum over a global split, and what a plan needs of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Argument, Launch, OperandArgument, Plan, Problem, ScalarArgument, WorkspaceArgument

ALIGNMENT = 256
"""Bytes to which parts of the workspace are aligned: enough for any vector and for views of a buffer."""
REDUCTION_ITEMS = 256
"""Work-items of a work-group that sums partial results; each sums elements of one row of D."""
SUMS = ("sum_of_splits", "sum_of_shares")
"""The second launches, which add partial sums."""
GRID_MAX = 65_535
"""Work-groups along y and z that every device takes (CUDA's limit, which NVIDIA's OpenCL has too)."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Parts of the workspace, one after the other. Offsets and sizes in bytes; a part of size 0 is not used."""

    sizes: tuple[int, ...]

    def offset(self, part: int) -> int:
        return sum(map(_aligned, self.sizes[:part]))

    def argument(self, part: int) -> WorkspaceArgument:
        return WorkspaceArgument(self.offset(part))

    @property
    def total(self) -> int:
        return self.offset(len(self.sizes))


def partial_sums_bytes(gemm: Gemm, global_split: int) -> int:
    """One compact M x N matrix for each part of K and each matrix of the batch; none without a split."""
    return 0 if global_split == 1 else global_split * gemm.batch * gemm.m * gemm.n * np.dtype(gemm.dtype).itemsize


def grid(tiles: tuple[int, int], depth: int) -> tuple[int, int, int]:
    """A work-group for each tile and each of `depth`. Kernels number tiles in one dimension, so that any shape serves;
    two are kept where they can be, since PoCL compiles anew for a launch of 65,536 work-items or more along one."""
    return (*tiles, depth) if tiles[1] <= GRID_MAX else (tiles[0] * tiles[1], 1, depth)


def integers(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int32") for value in values)


def longs(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int64") for value in values)


def output(gemm: Gemm, global_split: int, partial_sums: WorkspaceArgument) -> tuple[Argument, ...]:
    """Where a kernel leaves its sums: in D, or with a global split in the workspace. See `common.cl.j2`."""
    if global_split > 1:
        return (partial_sums, *longs(gemm.m, gemm.m * gemm.n))
    return final(gemm)


def sum_of_splits(gemm: Gemm, global_split: int, partial_sums: WorkspaceArgument) -> tuple[Launch, ...]:
    """With a global split, the launch that follows: D = alpha (sum of the partial sums, in order) + beta C."""
    if global_split == 1:
        return ()
    launch = Launch(
        module=0,
        entry="sum_of_splits",
        grid=(-(-gemm.m // REDUCTION_ITEMS), min(gemm.n, GRID_MAX), gemm.batch),
        work_group=(REDUCTION_ITEMS, 1, 1),
        arguments=(*final(gemm), partial_sums, *integers(gemm.m, gemm.n)),
    )
    return (launch,)


def final(gemm: Gemm) -> tuple[Argument, ...]:
    """D with alpha, and C with beta where the type has one: FINAL_PARAMETERS of `common.cl.j2`."""
    d = (OperandArgument("D"), *longs(gemm.ldd, gemm.stride_d), ScalarArgument(gemm.alpha, gemm.dtype))
    c = (OperandArgument("C"), *longs(gemm.ldc, gemm.stride_c), ScalarArgument(gemm.beta, gemm.dtype))
    return d + c if gemm.use_beta else d


def allocations(problem: Problem, plan: Plan) -> Iterator[tuple[str, int]]:
    """Every buffer that a plan needs, with its size in bytes."""
    for operand in OPERATIONS[problem.type.operation].operands(problem):
        yield operand.name, operand.storage_elements * np.dtype(operand.dtype).itemsize
    yield "the workspace", plan.workspace_bytes


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
