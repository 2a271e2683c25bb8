"""The launch: operands as TMA sees them, and the kernel's arguments in their order."""

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

from .kinds import ROW_BYTES
from .schedule import WgmmaSchedule, Workspace
from .shape import ROWS_OF_A_GROUP, WgmmaShape

SWIZZLES = {32: 1, 64: 2, 128: 3}
"""CU_TENSOR_MAP_SWIZZLE_32B, _64B and _128B."""

COPIES = 1
"""The module that copies operands, behind the kernel's own."""

NOTHING = ScalarArgument(0, "uint64")
"""The address of what a launch has not."""


def plan_of(config: Configuration, problem: Problem, target: Target) -> Plan:
    gemm, shape = Gemm.of(problem), WgmmaShape.of(config, problem.type)
    schedule = WgmmaSchedule.of(config, shape, gemm, target.compute_units)
    workspace = Workspace.of(schedule, shape)
    sides = sides_of(gemm, shape, workspace.size)
    copies = tuple(side.copy for side in sides.values() if side.copy)
    launch = Launch(
        module=0,
        entry="gemm",
        grid=(schedule.grid * shape.cluster, 1, 1),
        work_group=(shape.work_items, 1, 1),
        arguments=(
            *_fetched(sides, shape),
            *((_stored(gemm, shape),) if shape.by_tma else ()),
            *_epilogue(gemm, shape),
            *(_shared(schedule, workspace) if shape.splits else ()),
        ),
        shared_bytes=shape.shared_bytes,
    )
    steps: list[Step] = [*(copy.launch(COPIES) for copy in copies), launch]
    return Plan(tuple(steps), workspace_bytes(sides, workspace), zeroed=workspace.flag_bytes)


def workspace_bytes(sides: Mapping[str, TmaOperand], workspace: Workspace) -> int:
    """What partial sums need, and behind it the copies of operands."""
    ends = (side.copy.offset + side.copy.bytes for side in sides.values() if side.copy)
    return max((workspace.size, *ends))


@dataclass(frozen=True, slots=True)
class TmaOperand:
    """An operand as TMA sees it: batch, outer, contiguous. Where it is not fetched from where it lies, there is a
    `copy` of it."""

    name: str
    shape: tuple[int, int, int]
    strides: tuple[int, int, int]
    along_k: bool
    copy: AlignedCopy | None = None

    def fetched(self, side: int, sharers: int, shape: WgmmaShape) -> TensorMapArgument:
        """With the box that one copy brings, of a tile that has `side` rows or columns and that `sharers` work-groups
        fetch together."""
        depth = shape.kind.depth
        box = (1, side // sharers, depth) if self.along_k else (1, depth // sharers, ROWS_OF_A_GROUP)
        dtype = shape.kind.copied_as
        name, offset = ("", self.copy.offset) if self.copy else (self.name, 0)
        return TensorMapArgument(name, dtype, self.shape, self.strides, box, SWIZZLES[ROW_BYTES], offset)


def sides_of(gemm: Gemm, shape: WgmmaShape, offset: int) -> dict[str, TmaOperand]:
    """A and B. From `offset` on in the workspace are copies of what TMA does not take, and of what the instruction
    takes only the other way round."""
    sides = {}
    for name, side, leading, stride, along_k in (
        ("A", gemm.m, gemm.lda, gemm.stride_a, gemm.transpose_a),
        ("B", gemm.n, gemm.ldb, gemm.stride_b, not gemm.transpose_b),
    ):
        rows, length = (side, gemm.k) if along_k else (gemm.k, side)
        transposed = not along_k and not shape.kind.either_way
        if transposed or needs_copy(leading, stride, gemm.batch, shape.kind.bytes):
            offset = -(-offset // PART_ALIGNMENT) * PART_ALIGNMENT
            copy = AlignedCopy(name, gemm.batch, rows, length, leading, stride, shape.kind.bytes, offset, transposed)
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
    """D, of which one copy writes what a warp group has of a part's columns."""
    sides = (ROWS_OF_A_GROUP, shape.part) if shape.rows_are_n else (shape.part, ROWS_OF_A_GROUP)
    extents, strides = (gemm.batch, gemm.n, gemm.m), (gemm.stride_d, gemm.ldd, 1)
    return TensorMapArgument("D", shape.dest, extents, strides, (1, *sides), SWIZZLES[sides[1] * shape.dest_bytes])


def _epilogue(gemm: Gemm, shape: WgmmaShape) -> tuple[Argument, ...]:
    given = {"D": True, "C": True, "Bias": gemm.bias, "ScaleA": gemm.scaled, "ScaleB": gemm.scaled}
    return (
        *(OperandArgument(name) if is_given else NOTHING for name, is_given in given.items()),
        *integers(*shape.sides(gemm), gemm.k, gemm.batch),
        *longs(gemm.ldd, gemm.stride_d, gemm.ldc, gemm.stride_c),
        *(ScalarArgument(value, gemm.sums) for value in (gemm.alpha, gemm.beta)),
    )


def _shared(schedule: WgmmaSchedule, workspace: Workspace) -> tuple[Argument, ...]:
    # A plan without shared tiles has no workspace.
    places = (WorkspaceArgument(workspace.sums_at), WorkspaceArgument(0)) if schedule.shares else (NOTHING, NOTHING)
    return (*places, *integers(schedule.alone, schedule.shares, schedule.stretch, schedule.parts))
