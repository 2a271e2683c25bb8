"""The plan: operands as TMA sees them, and the kernel's arguments in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.kernels.gemm.cuda.aligned import PART_ALIGNMENT, AlignedCopy, needs_copy
from tunesmith.kernels.gemm.launching import integers, longs
from tunesmith.problems.gemm import Gemm
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    OperandArgument,
    Plan,
    Problem,
    ScalarArgument,
    Step,
    Target,
    TensorMapArgument,
    WorkspaceArgument,
)

from .operand_types import ROW_BYTES
from .schedule import WgmmaSchedule, Workspace
from .shape import ROWS_OF_A_GROUP, WgmmaShape

SWIZZLES = {32: 1, 64: 2, 128: 3}
"""CU_TENSOR_MAP_SWIZZLE_32B, _64B and _128B."""

COPIES = 1
"""The index of the module that copies operands; the kernel's own is 0."""

NO_ADDRESS = ScalarArgument(0, "uint64")
"""The address of an array that a launch does not have."""


def plan_of(config: Configuration, problem: Problem, target: Target) -> Plan:
    gemm, shape = Gemm.of(problem), WgmmaShape.of(config, problem.type)
    schedule = WgmmaSchedule.of(config, shape, gemm, target.compute_units)
    workspace = Workspace.of(schedule, shape)
    sides = sides_of(gemm, shape, workspace.size)
    copies = tuple(side.copy for side in sides.values() if side.copy)
    launch = Launch(
        module=0,
        entry="gemm",
        grid=(schedule.grid * schedule.cluster, 1, 1),
        work_group=(shape.work_items, 1, 1),
        arguments=(
            *_fetched(sides, shape),
            *((_stored(gemm, shape),) if shape.by_tma else ()),
            *_epilogue(gemm, shape),
            *(_shared(schedule, workspace) if shape.splits else ()),
        ),
        shared_bytes=shape.shared_bytes,
        cluster=schedule.cluster_parts,
        early=target.starts_early,
    )
    steps: list[Step] = [*(copy.launch(COPIES, target) for copy in copies), launch]
    return Plan(tuple(steps), workspace_bytes(sides, workspace), zeroed=workspace.flag_bytes)


def workspace_bytes(sides: Mapping[str, TmaOperand], workspace: Workspace) -> int:
    """Bytes of the workspace: partial sums first, then the copies of operands."""
    ends = (side.copy.offset + side.copy.bytes for side in sides.values() if side.copy)
    return max((workspace.size, *ends))


@dataclass(frozen=True, slots=True)
class TmaOperand:
    """An operand as TMA sees it: batch, outer, contiguous dimension. If TMA cannot fetch the operand itself, it fetches
    its `copy`."""

    name: str
    shape: tuple[int, int, int]
    strides: tuple[int, int, int]
    along_k: bool
    copy: AlignedCopy | None = None

    def fetched(self, side: int, sharers: int, shape: WgmmaShape) -> TensorMapArgument:
        """The tensor map, with the box that one TMA copy fetches of a tile.

        The tile has `side` rows or columns, and `sharers` work-groups fetch it together.
        """
        depth = shape.operand_type.depth
        box = (1, side // sharers, depth) if self.along_k else (1, depth // sharers, ROWS_OF_A_GROUP)
        dtype = shape.operand_type.copied_as
        name, offset = ("", self.copy.offset) if self.copy else (self.name, 0)
        return TensorMapArgument(name, dtype, self.shape, self.strides, box, SWIZZLES[ROW_BYTES], offset)


def sides_of(gemm: Gemm, shape: WgmmaShape, offset: int) -> dict[str, TmaOperand]:
    """A and B. The workspace has, from `offset` on, copies of operands with strides that TMA does not take, and of
    operands that must be transposed."""
    sides = {}
    for name, side, leading, stride, along_k in (
        ("A", gemm.m, gemm.lda, gemm.stride_a, gemm.transpose_a),
        ("B", gemm.n, gemm.ldb, gemm.stride_b, not gemm.transpose_b),
    ):
        rows, length = (side, gemm.k) if along_k else (gemm.k, side)
        transposed = not along_k and not shape.operand_type.any_layout
        if transposed or needs_copy(leading, stride, gemm.batch, shape.operand_type.bytes):
            offset = -(-offset // PART_ALIGNMENT) * PART_ALIGNMENT
            copy = AlignedCopy(
                name, gemm.batch, rows, length, leading, stride, shape.operand_type.bytes, offset, transposed
            )
            offset += copy.bytes
            extents, strides = (gemm.batch, copy.rows_to, copy.length_to), (copy.stride_to, copy.leading_to, 1)
            sides[name] = TmaOperand(name, extents, strides, along_k or transposed, copy)
        else:
            sides[name] = TmaOperand(name, (gemm.batch, rows, length), (stride, leading, 1), along_k)
    return sides


def _fetched(sides: Mapping[str, TmaOperand], shape: WgmmaShape) -> tuple[TensorMapArgument, TensorMapArgument]:
    x, y = (sides["B"], sides["A"]) if shape.rows_are_n else (sides["A"], sides["B"])
    return x.fetched(shape.rows, shape.cluster_columns, shape), y.fetched(shape.columns, shape.cluster_rows, shape)


def _stored(gemm: Gemm, shape: WgmmaShape) -> TensorMapArgument:
    """The tensor map of D; one TMA copy writes a warp group's share of a part's columns."""
    sides = (ROWS_OF_A_GROUP, shape.part) if shape.rows_are_n else (shape.part, ROWS_OF_A_GROUP)
    extents, strides = (gemm.batch, gemm.n, gemm.m), (gemm.stride_d, gemm.ldd, 1)
    return TensorMapArgument("D", shape.dest, extents, strides, (1, *sides), SWIZZLES[sides[1] * shape.dest_bytes])


def _epilogue(gemm: Gemm, shape: WgmmaShape) -> tuple[Argument, ...]:
    used = {"D": True, "C": True, "Bias": gemm.bias, "ScaleA": gemm.scaled, "ScaleB": gemm.scaled}
    return (
        *(OperandArgument(name) if is_used else NO_ADDRESS for name, is_used in used.items()),
        *integers(*shape.sides(gemm), gemm.k, gemm.batch),
        *longs(gemm.ldd, gemm.stride_d, gemm.ldc, gemm.stride_c),
        *(ScalarArgument(value, gemm.sums) for value in (gemm.alpha, gemm.beta)),
    )


def _shared(schedule: WgmmaSchedule, workspace: Workspace) -> tuple[Argument, ...]:
    # A plan without shared tiles has no workspace.
    addresses = (WorkspaceArgument(workspace.sums_at), WorkspaceArgument(0)) if schedule.shares else (NO_ADDRESS,) * 2
    return (*addresses, *integers(schedule.alone, schedule.shares, schedule.stretch, schedule.parts))
