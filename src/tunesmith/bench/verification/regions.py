"""Guarded memory: an array between its guard bands, and the content of every byte before a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tunesmith.records import Operand

from .poison import Bytes, around_pattern, filled, itemsize

_NARROWEST_GUARD, _WIDEST_GUARD = 512 * 1024, 1024 * 1024
WORD = 8
"""Bytes that device programs compare at once. A region is a whole number of words, and its storage starts at a word."""
WORKSPACE = "workspace"
_GARBAGE = "float32"
"""The type of the NaNs in a workspace, whose content is undefined before a run."""


@dataclass(frozen=True, slots=True)
class Region:
    """An array in guarded memory: `start` guard bytes, `size` bytes of storage, and at least `start` guard bytes."""

    name: str
    dtype: str
    start: int
    size: int

    @staticmethod
    def of(name: str, dtype: str, size: int, alignment: int) -> Region:
        step = max(alignment, WORD)
        guard = min(max(size, _NARROWEST_GUARD), _WIDEST_GUARD)
        return Region(name, dtype, -(-guard // step) * step, size)

    @property
    def storage(self) -> slice:
        return slice(self.start, self.start + self.size)

    @property
    def length(self) -> int:
        """Bytes with both guard bands: a whole number of words."""
        return 2 * self.start + -(-self.size // WORD) * WORD

    @property
    def around(self) -> Bytes:
        """The guard bands' pattern, one element. Behind the storage it continues in step with the elements, so that an
        element that is read there is the NaN."""
        return around_pattern(self.dtype)

    def image(self, content: Bytes) -> Bytes:
        """All bytes of the region, with this content in the storage."""
        image = filled(self.around, self.length)
        image[self.storage] = content
        return image


def storage_region(operand: Operand, alignment: int) -> Region:
    return Region.of(operand.name, operand.dtype, operand.storage_elements * itemsize(operand.dtype), alignment)


def workspace_region(size: int, alignment: int) -> Region:
    return Region.of(WORKSPACE, _GARBAGE, size, alignment)


def is_padded(operand: Operand) -> bool:
    """Whether the storage has elements that do not belong to the array."""
    return operand.storage_elements != np.prod(operand.shape, dtype=np.int64)


def padding_mask(operand: Operand) -> NDArray[np.bool_] | None:
    """Marks the storage elements that do not belong to the array; None if there are none."""
    if not is_padded(operand):
        return None
    mask = np.ones(operand.storage_elements, np.bool_)
    logical(operand, mask)[...] = False
    return mask


def logical(operand: Operand, storage: NDArray[np.generic]) -> NDArray[np.generic]:
    """The operand's array as a view of its storage."""
    steps = tuple(stride * storage.itemsize for stride in operand.strides)
    return as_strided(storage, operand.shape, steps)
