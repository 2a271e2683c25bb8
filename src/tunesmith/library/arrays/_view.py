"""One view of memory: where an array's elements lie, whichever library's array it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

ALIGNMENT = 16
"""Bytes to which the addresses of operands may have to be aligned: of tensor maps, and where a program was promised it.
"""

NOT_YET = 256
"""Stands for an address until there is one: aligned as it will be, and not null, so that tensor maps can be encoded."""

WIDEST = 2
"""On the host, columns further apart than this many times their length are copied together: a device without the
host's memory would otherwise be sent mostly what lies between them."""


@dataclass(frozen=True, slots=True)
class View:
    """An array by NumPy's name of its type, its shape, and its strides in bytes.

    `native` is False for numbers in another byte order, `written_on` the stream on which an array says that it was
    written, `number` the GPU's (None where only the driver can tell). `owner` keeps the memory alive.
    """

    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    read_only: bool = False
    written_on: int | None = None
    number: int | None = None
    owner: Any = None
    on_host: bool = False
    native: bool = True

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.itemsize * self.count

    @property
    def layout(self) -> tuple[Any, ...]:
        """All that a launch depends on but for the address, of which it depends on the alignment alone."""
        return self.dtype, self.native, self.shape, self.strides, self.address % ALIGNMENT, self.read_only

    @property
    def selector(self) -> str:
        """The GPU's; nothing for the host's memory, and for an empty array, which may lie nowhere."""
        if self.on_host or not self.count:
            return ""
        from tunesmith.devices.cuda.device import ordinal_of

        return selector(ordinal_of(self.address) if self.number is None else self.number)

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last, of strides that are not negative."""
        reach = zip(self.shape, self.strides, strict=True)
        return self.itemsize + sum((extent - 1) * stride for extent, stride in reach) if self.count else 0

    @property
    def contiguous(self) -> bool:
        """Whether elements follow one another as in C."""
        return self.has_strides(natural_strides(self.shape, self.itemsize))

    def has_strides(self, steps: tuple[int, ...]) -> bool:
        """Whether elements lie as by strides of so many bytes; that of an axis with one element does not matter."""
        axes = zip(self.shape, self.strides, steps, strict=True)
        return 0 in self.shape or all(extent == 1 or stride == step for extent, stride, step in axes)

    def overlaps(self, other: View) -> bool:
        """Whether the ranges of memory of both meet."""
        return self.address < other.address + other.span and other.address < self.address + self.span

    @property
    def overlaps_itself(self) -> bool:
        """Whether two elements share a byte, so that nothing can be written there as it should be."""
        axes = sorted((abs(step), extent) for extent, step in zip(self.shape, self.strides, strict=True) if extent > 1)
        reach = self.itemsize
        for step, extent in axes if self.count else ():
            if step < reach:
                return self._meets_itself(axes)
            reach += step * (extent - 1)
        return False

    def _meets_itself(self, axes: Sequence[tuple[int, int]]) -> bool:
        """The same by looking at every element: strides that are not nested may still keep elements apart."""
        if axes[0][0] == 0:
            return True
        offsets = np.zeros(1, np.int64)
        for step, extent in axes:
            offsets = np.add.outer(offsets, step * np.arange(extent, dtype=np.int64)).reshape(-1)
        offsets.sort()
        return bool((np.diff(offsets) < self.itemsize).any())

    def like(self, dtype: str, shape: tuple[int, ...]) -> View:
        """Of memory that is still to be made beside this one, row-major and aligned."""
        size = np.dtype(dtype).itemsize
        made = replace(self, dtype=dtype, itemsize=size, shape=shape, strides=natural_strides(shape, size))
        return replace(made, address=NOT_YET, read_only=False, native=True, owner=None)

    # --- batches of matrices ------------------------------------------------------------------------------------------

    def transposed(self) -> View:
        """Every matrix of a batch."""
        (*batch, rows, columns), (*steps, down, along) = self.shape, self.strides
        return replace(self, shape=(*batch, columns, rows), strides=(*steps, along, down))

    def batch(self, length: int) -> View:
        """As batch x rows x columns with a batch of that length; a single matrix is repeated."""
        shape, strides = ((1, *self.shape), (0, *self.strides)) if len(self.shape) == 2 else (self.shape, self.strides)
        step = strides[0] if length == shape[0] else 0
        return replace(self, shape=(length, *shape[1:]), strides=(step, *strides[1:]))

    def first(self) -> View:
        """The first matrix of a batch, as a batch of one."""
        return replace(self, shape=(1, *self.shape[1:]))

    def one_below_the_other(self) -> View | None:
        """The batch as one tall matrix, where each matrix's rows go on where the last one's ended."""
        batch, rows, columns = self.shape
        step = self.strides[0] if rows == 1 else self.strides[1]
        if batch > 1 and self.strides[0] != step * rows:
            return None
        return replace(self, shape=(1, batch * rows, columns), strides=(0, step, self.strides[2]))

    def leading_dimension(self, transposed: bool, interleaved: bool = False) -> int | None:
        """How far apart the columns (transposed: the rows) of a batch x rows x columns are, in elements of one matrix.

        None where the array is not laid out so. Along a column, elements are adjacent, and the matrices of the batch
        follow one another at `leading` times the number of columns; `interleaved`, the elements of all matrices at one
        position are adjacent.
        """
        inner, outer = (2, 1) if transposed else (1, 2)
        length, unit = self.shape[inner], self.itemsize * (self.shape[0] if interleaved else 1)
        steps = [stride / unit for stride in self.strides]
        leading = steps[outer] if self.shape[outer] > 1 else float(length)
        adjacent = length == 1 or steps[inner] == 1
        regular = leading.is_integer() and length <= leading and self._can_be_taken(length, leading)
        in_batch = self.strides[0] == self.itemsize if interleaved else steps[0] == leading * self.shape[outer]
        return int(leading) if adjacent and regular and (self.shape[0] == 1 or in_batch) else None

    def _can_be_taken(self, length: int, leading: float) -> bool:
        """On a GPU everything is where kernels work on it."""
        near = not self.on_host or leading <= max(WIDEST * length, length + 16)
        return near and self.native and self.address % self.itemsize == 0


def natural_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Those of a C-contiguous array, in bytes."""
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


@cache
def selector(number: int) -> str:
    return f"CUDA:{number}"
