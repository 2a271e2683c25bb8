"""A copy of a matrix whose rows begin at multiples of 16 bytes, for a kernel that takes no others (TMA); or of the
transposed matrix, for one that takes its rows only along the other dimension."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tunesmith.kernels.base import source
from tunesmith.records import Launch, Module, OperandArgument, ScalarArgument, WorkspaceArgument

ALIGNMENT = 16
"""Bytes that addresses and strides of a tensor map are multiples of (CUDA driver API, cuTensorMapEncodeTiled)."""
PART_ALIGNMENT = 256
"""Bytes from which each copy in a workspace begins."""
_THREADS = 256
_TILE_BYTES = 128
"""Of each row of a tile that a work-group transposes, and of each column."""


@dataclass(frozen=True, slots=True)
class AlignedCopy:
    """An operand's rows, contiguous along their `length` elements, copied into the workspace `offset` bytes from its
    start; `transposed`, its columns, which are then contiguous. `leading` and `stride` are those of the operand, in
    elements; `element` is the size of one in bytes: 1, 2 or 4 where it is transposed."""

    name: str
    batch: int
    rows: int
    length: int
    leading: int
    stride: int
    element: int
    offset: int = 0
    transposed: bool = False

    @property
    def rows_to(self) -> int:
        """Rows of the copy."""
        return self.length if self.transposed else self.rows

    @property
    def length_to(self) -> int:
        """Elements of one row of the copy, contiguous."""
        return self.rows if self.transposed else self.length

    @property
    def leading_to(self) -> int:
        """Elements from one row of the copy to the next."""
        return -(-self.length_to * self.element // ALIGNMENT) * ALIGNMENT // self.element

    @property
    def stride_to(self) -> int:
        """Elements from one matrix of the copied batch to the next."""
        return self.leading_to * self.rows_to

    @property
    def bytes(self) -> int:
        """Of the copy, up to where the next one may begin."""
        return -(-self.batch * self.stride_to * self.element // PART_ALIGNMENT) * PART_ALIGNMENT

    def launch(self, module: int) -> Launch:
        """By module number `module` of the plan, which is `aligned_module()`."""
        steps = (self.length, self.leading, self.stride, self.leading_to, self.stride_to)
        row, step, batch_step, step_to, batch_step_to = (
            ScalarArgument(extent * self.element, "int64") for extent in steps
        )
        return Launch(
            module,
            "transpose" if self.transposed else "align",
            grid=(self._work_groups, 1, self.batch),
            work_group=(_THREADS, 1, 1),
            arguments=(
                *(OperandArgument(self.name), WorkspaceArgument(self.offset)),
                *(row, ScalarArgument(self.rows, "int64"), step, batch_step, step_to, batch_step_to),
                *([ScalarArgument(self.element, "int32")] if self.transposed else []),
            ),
        )

    @property
    def _work_groups(self) -> int:
        """For one matrix: one for each tile, or a work-item for every 16 bytes."""
        if self.transposed:
            return -(-self.length * self.element // _TILE_BYTES) * -(-self.rows * self.element // _TILE_BYTES)
        parts = -(-self.length * self.element // ALIGNMENT) * self.rows
        return -(-parts // _THREADS)


def needs_copy(leading: int, stride: int, batch: int, element: int) -> bool:
    """Whether a tensor map cannot take an operand with these strides, in elements. An operand's first element is
    aligned as memory is allocated; a view that is not is for its caller to copy."""
    return bool(leading * element % ALIGNMENT or (batch > 1 and stride * element % ALIGNMENT))


@cache
def aligned_module() -> Module:
    return Module("CUDA", source(__package__, "aligned.cu"), ("align", "transpose"))
