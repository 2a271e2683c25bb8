"""What the launches of several GEMM families have alike: arguments as their sources take them, grids, and memory."""

from __future__ import annotations

from collections.abc import Iterator

from tunesmith.problems import storage_bytes
from tunesmith.problems.gemm import Gemm, GemmOperation
from tunesmith.records import Argument, CompiledFacts, OperandArgument, Problem, Rejection, ScalarArgument, Target

GRID_MAX = 65_535
"""Work-groups along y and z that every device takes (CUDA's limit, which NVIDIA's OpenCL has too)."""


def grid(tiles: tuple[int, int], depth: int) -> tuple[int, int, int]:
    """A work-group for each tile and each of `depth`. Kernels number tiles in one dimension, so that any shape serves;
    two are kept where they can be, since PoCL compiles anew for a launch of 65,536 work-items or more along one."""
    return (*tiles, depth) if tiles[1] <= GRID_MAX else (tiles[0] * tiles[1], 1, depth)


def integers(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int32") for value in values)


def longs(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int64") for value in values)


def factor(name: str, gemm: Gemm) -> tuple[Argument, ...]:
    """Address, leading dimension and stride of A or B as it lies in memory."""
    leading, stride = (gemm.lda, gemm.stride_a) if name == "A" else (gemm.ldb, gemm.stride_b)
    return (OperandArgument(name), *longs(leading, stride))


def final(gemm: Gemm) -> tuple[Argument, ...]:
    """D with alpha, and C with beta where the type has one: FINAL_PARAMETERS of OpenCL's `common.cl.j2`,
    OUTPUT_PARAMETERS of portBLAS's `output.h`."""
    d = (OperandArgument("D"), *longs(gemm.ldd, gemm.stride_d), ScalarArgument(gemm.alpha, gemm.sums))
    c = (OperandArgument("C"), *longs(gemm.ldc, gemm.stride_c), ScalarArgument(gemm.beta, gemm.sums))
    return d + c if gemm.use_beta else d


def too_much_local(need: int, what: str, target: Target) -> Iterator[Rejection]:
    if need > target.local_memory_bytes:
        yield Rejection("local memory", f"{need} bytes {what}, the device has {target.local_memory_bytes}")


def too_much_for_program(fact: CompiledFacts, items: int, target: Target) -> Iterator[Rejection]:
    """What the compiler says: more work-items than its registers allow, and the local memory it really took."""
    if fact.max_work_group_size is not None and items > fact.max_work_group_size:
        allowed = f"the program of {fact.entry} allows {fact.max_work_group_size}"
        yield Rejection("work-group size", f"{items} work-items, {allowed}")
    if fact.local_bytes is not None and fact.local_bytes > target.local_memory_bytes:
        have = f"the device has {target.local_memory_bytes}"
        yield Rejection("local memory", f"{fact.entry} takes {fact.local_bytes} bytes, {have}")


def allocations(problem: Problem, workspace_bytes: int) -> dict[str, int]:
    """Every buffer that a launch needs, with its size in bytes."""
    return {x.name: storage_bytes(x) for x in GemmOperation().operands(problem)} | {"the workspace": workspace_bytes}
