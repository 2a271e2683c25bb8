"""The operands to time with: so many copies of them that no cache holds the next copy."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from tunesmith.devices import Buffer, Device, LaunchError
from tunesmith.records import Operand, Problem, Target

from .verification.poison import itemsize

_LARGEST_SHARE = 0.25
"""Largest share of the device's memory for all operand sets together. Verification needs the rest."""
_MOST_SETS = 512
"""Binding a plan to a set costs some ten microseconds. From 100 KB a set, this many sets outlast a GPU's cache."""


Put = Callable[[Buffer], None]
"""Writes an operand's content to the beginning of a buffer."""


class OperandSets:
    """`sets[i]` maps an operand's name to a buffer; all sets hold the same numbers at different addresses.

    `put[name]` writes an operand's first copy; the device makes the other copies. The contents of operands that are not
    in `put` are undefined.
    """

    def __init__(self, device: Device, operands: Sequence[Operand], put: Mapping[str, Put], count: int) -> None:
        self._device, self._owned = device, list[Buffer]()
        self.sets: list[dict[str, Buffer]] = [{} for _ in range(count)]
        self.size = 0
        try:
            for operand in operands:
                self._fill(operand, put.get(operand.name))
        except LaunchError:
            self.release()
            raise

    def _fill(self, operand: Operand, put: Put | None) -> None:
        size = storage_bytes(operand, self._device.alignment)
        per_buffer = max(1, min(len(self.sets), self._device.target.max_allocation_bytes // size))
        original: Buffer | None = None
        for first in range(0, len(self.sets), per_buffer):
            sets = self.sets[first : first + per_buffer]
            buffer = self._device.allocate(size * len(sets))
            self._owned.append(buffer)
            self.size += size * len(sets)
            if put and original is None:
                put(buffer)
            elif put:
                self._device.copy(original, buffer, size)
            if put:
                repeat(self._device, buffer, size, size * len(sets))
            original = buffer
            for index, buffers in enumerate(sets):
                buffers[operand.name] = self._device.view(buffer, index * size, size)

    def release(self) -> None:
        self._device.release(*self._owned)
        self._owned.clear()


def repeat(device: Device, buffer: Buffer, first: int, size: int) -> None:
    """Fill `size` bytes of a buffer with its `first` bytes again and again; each copy doubles what is there."""
    done = first
    while done < size:
        added = min(done, size - done)
        device.copy(buffer, buffer, added, target_offset=done)
        done += added


def storage_bytes(operand: Operand, alignment: int) -> int:
    """Bytes from the operand in one set to the operand in the next."""
    size = max(1, operand.storage_elements * itemsize(operand.dtype))
    return math.ceil(size / alignment) * alignment


def set_count(set_bytes: int, touched: float, target: Target, cold: bool) -> int:
    """How many sets to rotate through, so that other sets have filled the last-level cache before a set is used again.

    `touched` are the bytes of a set that an execution reads or writes. An operand that it does not touch (C with
    beta = 0) fills no cache.
    """
    if not cold:
        return 1
    needed = 1 + math.ceil(target.last_level_cache_bytes / max(1, min(touched, set_bytes)))
    affordable = int(_LARGEST_SHARE * target.global_memory_bytes) // set_bytes
    return max(1, min(needed, affordable, _MOST_SETS))


class OperandSetsCache:
    """The operand sets of the last problems. They are kept since candidates of one problem follow one another."""

    def __init__(self, device: Device, cold: bool) -> None:
        self._device, self._cold = device, cold
        self._kept: OrderedDict[str, OperandSets] = OrderedDict()

    def get(self, problem: Problem, operands: Sequence[Operand], touched: float, put: Mapping[str, Put]) -> OperandSets:
        key = problem.to_json()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        target = self._device.target
        set_bytes = sum(storage_bytes(operand, self._device.alignment) for operand in operands)
        count = set_count(set_bytes, touched, target, self._cold)
        self._make_room(count * set_bytes)
        operand_sets = self._kept[key] = OperandSets(self._device, operands, put, count)
        return operand_sets

    def _make_room(self, size: int) -> None:
        limit = _LARGEST_SHARE * self._device.target.global_memory_bytes
        while self._kept and sum(operand_sets.size for operand_sets in self._kept.values()) + size > limit:
            _, oldest = self._kept.popitem(last=False)
            oldest.release()

    def clear(self) -> None:
        while self._kept:
            self._kept.popitem()[1].release()
