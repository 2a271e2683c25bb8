"""What several GEMM families share in their launches: the arguments of their sources, grids, and memory."""

from __future__ import annotations

from collections.abc import Iterator

from tunesmith.problems import storage_bytes
from tunesmith.problems.gemm import Gemm, GemmOperation
from tunesmith.records import Argument, CompiledFacts, OperandArgument, Problem, Rejection, ScalarArgument, Target

GRID_MAX = 65_535
"""The most work-groups along y and z that every device takes (the limit of CUDA and of NVIDIA's OpenCL)."""


def grid(tiles: tuple[int, int], depth: int) -> tuple[int, int, int]:
    """The grid with `depth` work-groups for each tile.

    Kernels number tiles in one dimension, so any shape of the grid works. It has two dimensions of tiles if it can,
    since PoCL compiles again for a launch of 65,536 work-items or more along one dimension.
    """
    return (*tiles, depth) if tiles[1] <= GRID_MAX else (tiles[0] * tiles[1], 1, depth)


def integers(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int32") for value in values)


def longs(*values: int) -> tuple[Argument, ...]:
    return tuple(ScalarArgument(value, "int64") for value in values)


def input_arguments(name: str, gemm: Gemm) -> tuple[Argument, ...]:
    """The arguments for A or B in its original layout: address, leading dimension and stride."""
    leading, stride = (gemm.lda, gemm.stride_a) if name == "A" else (gemm.ldb, gemm.stride_b)
    return (OperandArgument(name), *longs(leading, stride))


def output_arguments(gemm: Gemm) -> tuple[Argument, ...]:
    """The arguments for D with alpha, and for C with beta if the type has beta.

    These are FINAL_PARAMETERS of OpenCL's `common.cl.j2` and OUTPUT_PARAMETERS of portBLAS's `output.h`.
    """
    d = (OperandArgument("D"), *longs(gemm.ldd, gemm.stride_d), ScalarArgument(gemm.alpha, gemm.sums))
    c = (OperandArgument("C"), *longs(gemm.ldc, gemm.stride_c), ScalarArgument(gemm.beta, gemm.sums))
    return d + c if gemm.use_beta else d


def too_much_local(need: int, what: str, target: Target) -> Iterator[Rejection]:
    if need > target.local_memory_bytes:
        yield Rejection("local memory", f"{need} bytes {what}, the device has {target.local_memory_bytes}")


def too_much_for_program(fact: CompiledFacts, items: int, target: Target) -> Iterator[Rejection]:
    """Rejections by what the compiler reports: too many work-items for its registers, or too much local memory."""
    if fact.max_work_group_size is not None and items > fact.max_work_group_size:
        allowed = f"the program of {fact.entry} allows {fact.max_work_group_size}"
        yield Rejection("work-group size", f"{items} work-items, {allowed}")
    if fact.local_bytes is not None and fact.local_bytes > target.local_memory_bytes:
        have = f"the device has {target.local_memory_bytes}"
        yield Rejection("local memory", f"{fact.entry} takes {fact.local_bytes} bytes, {have}")


def allocations(problem: Problem, workspace_bytes: int) -> dict[str, int]:
    """The size in bytes of every buffer that a launch needs, by name."""
    operands = {operand.name: storage_bytes(operand) for operand in GemmOperation().operands(problem)}
    return operands | {"the workspace": workspace_bytes}
