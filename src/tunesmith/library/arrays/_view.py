"""`View`: where the elements of an array lie in memory, for arrays of any library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

ALIGNMENT = 16
"""Bytes to which addresses of operands must be aligned for tensor maps and for programs compiled for such addresses."""

NOT_YET = 256
"""Stands for an address that is not known yet: aligned as the later one, and not null, so that tensor maps can be
encoded."""

WIDEST = 2
"""On the host, columns further apart than this many times their length are copied to lie together. Otherwise a device
that does not share the host's memory would mostly be sent the gaps between columns."""


@dataclass(frozen=True, slots=True)
class View:
    """An array by NumPy's name of its data type, its shape, its strides in bytes, and its address.

    `native` is False for numbers in another byte order. `written_on` is the stream on which the array was written, if
    its library tells. `number` is the GPU's number (None if only the driver knows it). `owner` keeps the memory alive.
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
        """Everything that a launch depends on, except the address; of the address only the alignment."""
        return self.dtype, self.native, self.shape, self.strides, self.address % ALIGNMENT, self.read_only

    @property
    def selector(self) -> str:
        """The GPU's selector; "" for memory of the host, and for an empty array, which may have no address."""
        if self.on_host or not self.count:
            return ""
        from tunesmith.devices.cuda.device import ordinal_of

        return selector(ordinal_of(self.address) if self.number is None else self.number)

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last, for strides that are not negative."""
        reach = zip(self.shape, self.strides, strict=True)
        return self.itemsize + sum((extent - 1) * stride for extent, stride in reach) if self.count else 0

    @property
    def contiguous(self) -> bool:
        """Whether the array is C-contiguous."""
        return self.has_strides(natural_strides(self.shape, self.itemsize))

    def has_strides(self, steps: tuple[int, ...]) -> bool:
        """Whether the elements lie as with strides `steps`, in bytes. The stride of an axis with one element does not
        matter."""
        axes = zip(self.shape, self.strides, steps, strict=True)
        return 0 in self.shape or all(extent == 1 or stride == step for extent, stride, step in axes)

    def overlaps(self, other: View) -> bool:
        """Whether the two memory ranges, from first to last byte, overlap."""
        return self.address < other.address + other.span and other.address < self.address + self.span

    @property
    def overlaps_itself(self) -> bool:
        """Whether two elements share a byte, so that the array cannot be an output."""
        axes = sorted((abs(step), extent) for extent, step in zip(self.shape, self.strides, strict=True) if extent > 1)
        reach = self.itemsize
        for step, extent in axes if self.count else ():
            if step < reach:
                return self._meets_itself(axes)
            reach += step * (extent - 1)
        return False

    def _meets_itself(self, axes: Sequence[tuple[int, int]]) -> bool:
        """`overlaps_itself` by a look at every element: strides that are not nested may still keep elements apart."""
        if axes[0][0] == 0:
            return True
        offsets = np.zeros(1, np.int64)
        for step, extent in axes:
            offsets = np.add.outer(offsets, step * np.arange(extent, dtype=np.int64)).ravel()
        offsets.sort()
        return bool((np.diff(offsets) < self.itemsize).any())

    def like(self, dtype: str, shape: tuple[int, ...]) -> View:
        """The view of a row-major, aligned array on the same device whose memory is not allocated yet."""
        size = np.dtype(dtype).itemsize
        resized = replace(self, dtype=dtype, itemsize=size, shape=shape, strides=natural_strides(shape, size))
        return replace(resized, address=NOT_YET, read_only=False, native=True, owner=None)

    # --- batches of matrices ------------------------------------------------------------------------------------------

    def transposed(self) -> View:
        """The view with every matrix of the batch transposed."""
        (*batch, rows, columns), (*steps, down, along) = self.shape, self.strides
        return replace(self, shape=(*batch, columns, rows), strides=(*steps, along, down))

    def batch(self, length: int) -> View:
        """The view as batch x rows x columns with a batch of that length; a single matrix is repeated by a stride of
        0."""
        if len(self.shape) == 2:
            return replace(self, shape=(length, *self.shape), strides=(0, *self.strides))
        step = self.strides[0] if length == self.shape[0] else 0
        return replace(self, shape=(length, *self.shape[1:]), strides=(step, *self.strides[1:]))

    def first(self) -> View:
        """The first matrix of a batch, as a batch of one."""
        return replace(self, shape=(1, *self.shape[1:]))

    def one_below_the_other(self) -> View | None:
        """The batch as one tall matrix; None unless each matrix's rows begin where the rows of the last one ended."""
        batch, rows, columns = self.shape
        step = self.strides[0] if rows == 1 else self.strides[1]
        if batch > 1 and self.strides[0] != step * rows:
            return None
        return replace(self, shape=(1, batch * rows, columns), strides=(0, step, self.strides[2]))

    def leading_dimension(self, transposed: bool, interleaved: bool = False) -> int | None:
        """The distance between columns (transposed: between rows) of a batch x rows x columns, in elements of one
        matrix; None if the array is not laid out as follows.

        The elements of a column are adjacent, and the matrices of the batch follow one another at `leading` times the
        number of columns. `interleaved`: the elements of all matrices at one position are adjacent.
        """
        inner, outer = (2, 1) if transposed else (1, 2)
        length, unit = self.shape[inner], self.itemsize * (self.shape[0] if interleaved else 1)
        steps = [stride / unit for stride in self.strides]
        leading = steps[outer] if self.shape[outer] > 1 else float(length)
        adjacent = length == 1 or steps[inner] == 1
        regular = leading.is_integer() and length <= leading and self._is_usable(length, leading)
        in_batch = self.strides[0] == self.itemsize if interleaved else steps[0] == leading * self.shape[outer]
        return int(leading) if adjacent and regular and (self.shape[0] == 1 or in_batch) else None

    def _is_usable(self, length: int, leading: float) -> bool:
        """Whether kernels can use the array without a copy. On a GPU, gaps between columns do not matter."""
        is_dense = not self.on_host or leading <= max(WIDEST * length, length + 16)
        return is_dense and self.native and self.address % self.itemsize == 0


def natural_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of a C-contiguous array, in bytes."""
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


@cache
def selector(number: int) -> str:
    return f"CUDA:{number}"
