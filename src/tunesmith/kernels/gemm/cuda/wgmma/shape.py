"""`WgmmaShape`: a typed configuration, with what follows from it alone: tile, stages, shared memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tunesmith.kernels.cuda_limits import REGISTERS_PER_BLOCK, SHARED_RESERVED
from tunesmith.problems.gemm import DATA_TYPES, Gemm, dest_of
from tunesmith.records import Configuration, ProblemType

from .operand_types import OPERAND_TYPES, ROW_BYTES, OperandType, operand_type_of

ROWS_OF_A_GROUP, COLUMN_STEP = 64, 16
STAGE_ALIGNMENT, BARRIER_BYTES, SUM_BYTES = 1024, 16, 4
LOCAL_BYTES = 227 * 1024
"""Shared memory of a work-group on Hopper (CUDA programming guide)."""
ENOUGH_STAGES = 4
"""Stages that are worth more than one wait for the rest of a cluster; a guess."""
EIGHT = 8
"""Columns that a work-item's sums come by, two of each."""
MOST_IN_A_CLUSTER = 8
"""Work-groups of the largest clusters that every device with clusters takes (CUDA programming guide)."""
PARTS_OF_A_CLUSTER = range(2, MOST_IN_A_CLUSTER + 1)
"""Work-groups along K of a cluster."""
MOST_ITEMS = 2048
"""Work-items of a multiprocessor."""


def cluster_parts_of(config: Configuration) -> int:
    """Work-groups along K of a cluster, which is the third number of its shape; 1 if it is missing."""
    match config.get("ClusterShape"):
        case (_, _, int(parts)):
            return parts
        case _:
            return 1


@dataclass(frozen=True, slots=True)
class WgmmaShape:
    """A typed configuration, for a problem type.

    x is the operand whose side makes the instruction's rows, y the other operand, each as it is fetched: a transposed
    copy is contiguous along K. `dest` is NumPy's name of D's type. If TMA writes D, a warp group writes `parts` of its
    columns at once. With `splits`, the program can share a tile among work-groups. A cluster has `cluster_rows` by
    `cluster_columns` work-groups with a tile each, or `cluster_parts` work-groups with a part of K of one tile each; 0
    are as many as fill the device. The sums that are sent to these have room of their own, or that of the stages
    (`room_in_stages`).
    """

    operand_type: OperandType
    dest: str
    warp_groups: int
    columns: int
    stages: int
    rows_are_n: bool
    x_along_k: bool
    y_along_k: bool
    by_tma: bool
    parts: int
    promote_every: int
    splits: bool
    cluster_rows: int
    cluster_columns: int
    cluster_parts: int
    room_in_stages: bool = False

    @staticmethod
    def of(config: Configuration, problem_type: ProblemType, memory: int = LOCAL_BYTES) -> WgmmaShape:
        """The shape. A type that the tensor cores do not multiply gets the shape of half precision."""
        fields = problem_type.fields
        operand_type = operand_type_of(problem_type) or OPERAND_TYPES["h"]
        a_along_k = fields.flag("TransposeA") or not operand_type.any_layout
        b_along_k = not fields.flag("TransposeB") or not operand_type.any_layout
        rows_are_n = config.word("RowsAlong") == "N"
        x_along_k, y_along_k = (b_along_k, a_along_k) if rows_are_n else (a_along_k, b_along_k)
        cluster_m, cluster_n, *_ = config.integers("ClusterShape")
        by_tma = config.word("StorePath") == "TMA"
        shape = WgmmaShape(
            operand_type=operand_type,
            dest=DATA_TYPES[dest_of(problem_type)].dtype,
            warp_groups=config.integer("WarpGroups"),
            columns=config.integer("InstructionColumns"),
            stages=config.integer("Stages"),
            rows_are_n=rows_are_n,
            x_along_k=x_along_k,
            y_along_k=y_along_k,
            by_tma=by_tma,
            parts=int(by_tma),
            promote_every=config.integer("PromoteEvery"),
            splits=config.integer("GlobalSplitU") > 1 or config.integer("StreamKGrid") > 0,
            cluster_rows=cluster_n if rows_are_n else cluster_m,
            cluster_columns=cluster_m if rows_are_n else cluster_n,
            cluster_parts=cluster_parts_of(config),
        )
        shape = shape._with_stages(memory)
        return shape._with_more_parts(memory) if by_tma else shape

    def _with_stages(self, memory: int) -> WgmmaShape:
        """The shape with as many stages as fit, if the configuration leaves this open. Sums have room of their own if
        enough stages fit beside it."""
        inside = replace(self, room_in_stages=self.is_joint)
        shape = self if self._fitting(memory) >= (self.stages or ENOUGH_STAGES) else inside
        return replace(shape, stages=self.stages or shape._fitting(memory))

    def _fitting(self, memory: int) -> int:
        return (memory - replace(self, stages=0).shared_bytes) // (self.stage_bytes + BARRIER_BYTES)

    def _with_more_parts(self, memory: int) -> WgmmaShape:
        """The shape with as many parts of D at once as fit: at most half a tile, and without a loss of stages or of
        resident work-groups."""
        half = -(-self.slice(self.least_parts) // (2 * self.part))
        wider = (replace(self, parts=parts) for parts in range(half, 1, -1))
        fitting = (shape for shape in wider if shape.shared_bytes <= memory and shape.resident == self.resident)
        return next(fitting, self)

    @property
    def rows(self) -> int:
        return ROWS_OF_A_GROUP * self.warp_groups

    @property
    def part(self) -> int:
        """Columns of D that one TMA copy writes."""
        wide = self.columns % (2 * COLUMN_STEP) == 0 and not self.is_joint
        return 2 * COLUMN_STEP if wide else COLUMN_STEP

    @property
    def is_joint(self) -> bool:
        """Whether the work-groups of a cluster have a part of K each of one tile."""
        return self.cluster_parts != 1

    @property
    def least_parts(self) -> int:
        return self.cluster_parts or PARTS_OF_A_CLUSTER[0]

    @property
    def slice_step(self) -> int:
        """Columns that a slice is a multiple of. TMA writes more of them at once than a work-item has sums of."""
        return COLUMN_STEP if self.by_tma else EIGHT

    def slice(self, parts: int) -> int:
        """Columns of a tile that each of `parts` work-groups finishes; the last ones may have less."""
        return -(-self.columns // (self.slice_step * parts)) * self.slice_step if self.is_joint else self.columns

    @property
    def room_columns(self) -> int:
        """Columns whose sums are sent to a work-group, at most, if they have room of their own."""
        if not self.is_joint or self.room_in_stages:
            return 0
        return max(
            (parts - 1) * self.slice(parts)
            for parts in ((self.cluster_parts,) if self.cluster_parts else PARTS_OF_A_CLUSTER)
        )

    def holds(self, parts: int) -> bool:
        """Whether the sums of all slices fit where the stages were, with those that come if they have no other room."""
        columns = (parts + (parts - 1) * self.room_in_stages) * self.slice(parts)
        return self.rows * columns * SUM_BYTES <= self.stages * self.stage_bytes

    @property
    def work_items(self) -> int:
        return 128 * (self.warp_groups + 1)

    @property
    def registers_at_launch(self) -> int:
        """Registers of each work-item, which come eight at a time."""
        return REGISTERS_PER_BLOCK // self.work_items // 8 * 8

    @property
    def dest_bytes(self) -> int:
        return int(np.dtype(self.dest).itemsize)

    @property
    def fetched_columns(self) -> int:
        """Columns of y's tile in shared memory. Not along K, TMA fetches boxes of 64, of which the last may hold more
        than the tile needs."""
        boxes = -(-self.columns // ROWS_OF_A_GROUP)
        return self.columns if self.y_along_k else boxes * ROWS_OF_A_GROUP

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.fetched_columns) * ROW_BYTES

    @property
    def fetched_bytes(self) -> int:
        """Bytes of a stage that a work-group itself requests."""
        return (self.rows // self.cluster_columns + self.fetched_columns // self.cluster_rows) * ROW_BYTES

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory: the stages with their barriers, two buffers for parts of D in 16 bits (one is
        written while the other is read), sums that the rest of a cluster sends, and room to align."""
        stages = self.stages * (self.stage_bytes + BARRIER_BYTES)
        leaving = 2 * self.rows * self.parts * self.part * 2
        barriers = self.warp_groups * BARRIER_BYTES if self.is_joint else 0
        return STAGE_ALIGNMENT + stages + leaving + self.rows * self.room_columns * SUM_BYTES + barriers

    @property
    def resident(self) -> int:
        """Work-groups that are resident on a multiprocessor, by its shared memory and work-items."""
        by_memory = (LOCAL_BYTES + SHARED_RESERVED) // (self.shared_bytes + SHARED_RESERVED)
        return max(1, min(by_memory, MOST_ITEMS // self.work_items))

    def sides(self, gemm: Gemm) -> tuple[int, int]:
        """The sizes of D along the instruction's rows and columns."""
        return (gemm.n, gemm.m) if self.rows_are_n else (gemm.m, gemm.n)

    @property
    def sharers(self) -> int:
        """Work-groups of a cluster that have a tile each, which run side by side."""
        return self.cluster_rows * self.cluster_columns

    def tiles(self, gemm: Gemm) -> int:
        """Macro tiles of all matrices of the batch; the tiles of a cluster count once."""
        rows, columns = self.sides(gemm)
        down, across = self.rows * self.cluster_rows, self.columns * self.cluster_columns
        return -(-rows // down) * -(-columns // across) * gemm.batch
