"""`AlignedCopy`: a copy of a matrix whose rows begin at multiples of 16 bytes, as TMA needs them.

It copies the transposed matrix for a kernel that needs the other dimension contiguous. The text is `aligned.cu`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tunesmith.kernels.base import source
from tunesmith.records import Launch, Module, OperandArgument, ScalarArgument, Target, WorkspaceArgument

ALIGNMENT = 16
"""Addresses and strides of a tensor map are multiples of so many bytes (CUDA driver API, cuTensorMapEncodeTiled)."""
PART_ALIGNMENT = 256
"""Each copy in a workspace begins at a multiple of so many bytes."""
_THREADS = 256
_TILE_BYTES = 128
"""Bytes of each row, and of each column, of a tile that a work-group transposes."""


@dataclass(frozen=True, slots=True)
class AlignedCopy:
    """A copy of an operand's rows, which are contiguous along their `length` elements, in the workspace at `offset`.

    With `transposed`, the copy's rows are the operand's columns. `leading` and `stride` are those of the operand, in
    elements. `offset` is in bytes; `element` is the size of an element in bytes: 1, 2 or 4 if transposed.
    """

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
        """Bytes of the copy, up to where the next copy may begin."""
        return -(-self.batch * self.stride_to * self.element // PART_ALIGNMENT) * PART_ALIGNMENT

    def launch(self, module: int, target: Target) -> Launch:
        """The launch that copies; `module` is the index of `aligned_module()` in the plan's modules."""
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
            early=target.starts_early,
        )

    @property
    def _work_groups(self) -> int:
        """Work-groups for one matrix: one for each tile, or a work-item for every 16 bytes."""
        if self.transposed:
            return -(-self.length * self.element // _TILE_BYTES) * -(-self.rows * self.element // _TILE_BYTES)
        parts = -(-self.length * self.element // ALIGNMENT) * self.rows
        return -(-parts // _THREADS)


def needs_copy(leading: int, stride: int, batch: int, element: int) -> bool:
    """Whether a tensor map cannot take an operand with these strides, in elements.

    The operand's first element must be aligned, as allocated memory is; the caller must copy a view that is not.
    """
    return bool(leading * element % ALIGNMENT or (batch > 1 and stride * element % ALIGNMENT))


@cache
def aligned_module() -> Module:
    return Module("CUDA", source(__package__, "aligned.cu"), ("align", "transpose"))
