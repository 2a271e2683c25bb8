"""NumPy arrays as a GEMM's operands: which are there already, and how the others are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WIDEST = 2
"""Columns further apart than this many times their length are copied together: a device without the host's memory
would otherwise be sent mostly what lies between them."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch of matrices in one-dimensional storage, columns (or, transposed, rows) of `length` elements, `leading`
    apart.

    `in_place` says that `storage` is the caller's own memory, and may hold others' elements between the columns. In an
    interleaved batch, a column holds those of all matrices, and `step` is their number.
    """

    storage: Array
    length: int
    leading: int
    in_place: bool
    step: int = 1

    @property
    def leading_dimension(self) -> int:
        """As the problem has it: elements of one matrix."""
        return self.leading // self.step

    def fill(self, copy: Array) -> None:
        """Take the columns over from a copy of the storage, and leave alone what lies between them."""
        self._columns(self.storage)[...] = self._columns(copy)

    def _columns(self, storage: Array) -> Array:
        count = 1 + (storage.size - self.length) // self.leading
        strides = (self.leading * storage.itemsize, storage.itemsize)
        return np.lib.stride_tricks.as_strided(storage, (count, self.length), strides)


def leading_dimension(x: Array, transposed: bool, interleaved: bool = False) -> int | None:
    """How far apart the columns (transposed: the rows) of `x`, batch x rows x columns, are in elements of one matrix.

    None where `x` is not laid out so. Along a column, elements are adjacent, and the matrices of the batch follow one
    another at `leading` times the number of columns; `interleaved`, the elements of all matrices at one place are.
    """
    inner, outer = (2, 1) if transposed else (1, 2)
    length, place = x.shape[inner], x.itemsize * (x.shape[0] if interleaved else 1)
    steps = [stride / place for stride in x.strides]
    leading = steps[outer] if x.shape[outer] > 1 else float(length)
    adjacent = length == 1 or steps[inner] == 1
    regular = leading.is_integer() and length <= leading <= max(WIDEST * length, length + 16)
    follows = x.shape[0] == 1 or (x.strides[0] == x.itemsize if interleaved else steps[0] == leading * x.shape[outer])
    return int(leading) if adjacent and regular and follows and x.flags.aligned else None


def stored(x: Array, transposed: bool, interleaved: bool = False) -> Stored:
    """`x`, batch x rows x columns and not empty, as it is where it is laid out so, else copied."""
    leading = leading_dimension(x, transposed, interleaved)
    step = x.shape[0] if interleaved else 1
    if leading is None:
        columns = x if transposed else x.swapaxes(1, 2)
        length = columns.shape[2] * step
        ordered = np.moveaxis(columns, 0, 2) if interleaved else columns
        return Stored(np.ascontiguousarray(ordered).reshape(-1), length, length, in_place=False, step=step)
    span = 1 + sum((extent - 1) * (stride // x.itemsize) for extent, stride in zip(x.shape, x.strides, strict=True))
    storage = np.lib.stride_tricks.as_strided(x, (span,), (x.itemsize,), writeable=x.flags.writeable)
    return Stored(storage, x.shape[2 if transposed else 1] * step, leading * step, in_place=True, step=step)


def blank(shape: tuple[int, int, int], dtype: np.dtype[Any], alignment: int) -> Array:
    """An uninitialised batch x rows x columns array, row-major, its first element aligned to so many bytes."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.empty(size + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size].view(dtype).reshape(shape)
