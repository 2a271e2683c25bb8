"""A GEMM's operands in memory: which are there already, and how the others are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WIDEST = 2
"""Columns further apart than this many times their length are copied together: a device without the host's memory
would otherwise be sent mostly what lies between them."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """Batch x rows x columns on a GPU: where elements lie, which the host does not touch. Strides are in bytes."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        count = self.itemsize
        for extent in self.shape:
            count *= extent
        return count

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last; strides are not negative."""
        reach = zip(self.shape, self.strides, strict=True)
        return self.itemsize + sum((extent - 1) * stride for extent, stride in reach)

    def swapaxes(self, first: int, second: int) -> Matrices:
        order = list(range(len(self.shape)))
        order[first], order[second] = second, first
        shape, strides = (tuple(given[axis] for axis in order) for given in (self.shape, self.strides))
        return Matrices(self.address, self.dtype, shape, strides)

    def batch(self, length: int) -> Matrices:
        """With a batch of that length; one matrix is repeated."""
        shape, strides = ((1, *self.shape), (0, *self.strides)) if len(self.shape) == 2 else (self.shape, self.strides)
        repeated = length != shape[0]
        return Matrices(self.address, self.dtype, (length, *shape[1:]), ((0 if repeated else strides[0]), *strides[1:]))

    def __getitem__(self, places: slice) -> Matrices:
        """Some matrices of the batch, one after the other."""
        first, end, _ = places.indices(self.shape[0])
        address = self.address + first * self.strides[0]
        return Matrices(address, self.dtype, (end - first, *self.shape[1:]), self.strides)

    def one_below_the_other(self) -> Matrices | None:
        """The batch as one tall matrix, where each matrix's rows go on where the last one's ended."""
        batch, rows, columns = self.shape
        step = self.strides[0] if rows == 1 else self.strides[1]
        if batch > 1 and self.strides[0] != step * rows:
            return None
        return Matrices(self.address, self.dtype, (1, batch * rows, columns), (0, step, self.strides[2]))


X = TypeVar("X", Array, Matrices)


def matrix(x: X, place: int) -> X:
    """One matrix of a batch, as a batch of one."""
    return x[place : place + 1]


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
        return np.lib.stride_tricks.as_strided(_words(storage), (count, self.length), strides)


def leading_dimension(x: Array | Matrices, transposed: bool, interleaved: bool = False) -> int | None:
    """How far apart the columns (transposed: the rows) of `x`, batch x rows x columns, are in elements of one matrix.

    None where `x` is not laid out so. Along a column, elements are adjacent, and the matrices of the batch follow one
    another at `leading` times the number of columns; `interleaved`, the elements of all matrices at one place are.
    """
    inner, outer = (2, 1) if transposed else (1, 2)
    length, place = x.shape[inner], x.itemsize * (x.shape[0] if interleaved else 1)
    steps = [stride / place for stride in x.strides]
    leading = steps[outer] if x.shape[outer] > 1 else float(length)
    adjacent = length == 1 or steps[inner] == 1
    regular = leading.is_integer() and length <= leading and _fit_to_take(x, length, leading)
    follows = x.shape[0] == 1 or (x.strides[0] == x.itemsize if interleaved else steps[0] == leading * x.shape[outer])
    return int(leading) if adjacent and regular and follows else None


def _fit_to_take(x: Array | Matrices, length: int, leading: float) -> bool:
    """On a GPU everything is where kernels work on it."""
    if isinstance(x, Matrices):
        return x.address % x.itemsize == 0
    return x.flags.aligned and leading <= max(WIDEST * length, length + 16)


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
    words = _words(x)
    flat = np.lib.stride_tricks.as_strided(words, (span,), (x.itemsize,), writeable=x.flags.writeable)
    storage = flat if words is x else flat.view(x.dtype)
    return Stored(storage, x.shape[2 if transposed else 1] * step, leading * step, in_place=True, step=step)


def _words(x: Array) -> Array:
    """The array itself; as integers where its type comes from `ml_dtypes`, of which NumPy makes no strided views."""
    return x.view(f"u{x.itemsize}") if x.dtype.isbuiltin != 1 else x


def blank(shape: tuple[int, int, int], dtype: np.dtype[Any], alignment: int) -> Array:
    """An uninitialised batch x rows x columns array, row-major, its first element aligned to so many bytes."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.empty(size + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size].view(dtype).reshape(shape)
