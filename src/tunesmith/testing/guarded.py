"""A plan carried out between guard bands, and every byte that it may or may not touch looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tunesmith.devices import Buffer, Bytes, Device, Program
from tunesmith.problems import Array, Expected, Operation, strided
from tunesmith.records import Operand, Plan, Problem

GUARD_BYTE, UNWRITTEN_BYTE = 0xA5, 0xFF
"""What lies around a buffer; and in memory that must be written, where it is NaN in every floating-point type."""


class GuardedBuffer:
    """Device memory that holds `data`, between two guard bands."""

    def __init__(self, device: Device, data: Bytes) -> None:
        self._device, self._size = device, data.size
        self._band = -(-256 // device.alignment) * device.alignment
        self._whole = device.allocate(self._size + 2 * self._band)
        band = np.full(self._band, GUARD_BYTE, np.uint8)
        device.write(self._whole, np.concatenate([band, data, band]))
        self.memory: Buffer = device.view(self._whole, self._band, max(self._size, 1))

    def read(self) -> tuple[Bytes, bool]:
        """The contents, and whether the guard bands are as they were."""
        whole = self._device.read(self._whole, self._size + 2 * self._band)
        inside = whole[self._band : self._band + self._size]
        around = np.concatenate([whole[: self._band], whole[self._band + self._size :]])
        return inside, bool((around == GUARD_BYTE).all())

    def release(self) -> None:
        self._device.release(self._whole)


def mistakes(
    device: Device, programs: Sequence[Program], plan: Plan, operation: Operation, problem: Problem
) -> list[str]:
    """What is wrong with what a plan leaves behind, in words; nothing where all is right."""
    inputs = operation.inputs(problem, np.random.default_rng(7))
    operands = {operand.name: operand for operand in operation.operands(problem)}
    before = {name: _contents(operand, inputs) for name, operand in operands.items()}
    buffers = {name: GuardedBuffer(device, data) for name, data in before.items()}
    workspace = GuardedBuffer(device, np.full(plan.workspace_bytes, UNWRITTEN_BYTE, np.uint8))
    memory = {name: buffer.memory for name, buffer in buffers.items()}
    device.prepare(plan.from_scratch, programs, memory, workspace.memory).enqueue()
    device.synchronize()
    found = [] if workspace.read()[1] else ["bytes around the workspace were written"]
    expected = operation.reference(problem, inputs)
    for name, operand in operands.items():
        after, untouched = buffers[name].read()
        if not untouched:
            found.append(f"bytes around {name} were written")
        found += _wrong(operand, before[name], after, expected.get(name))
    for buffer in (*buffers.values(), workspace):
        buffer.release()
    return found


def _contents(operand: Operand, inputs: Mapping[str, Array]) -> Bytes:
    if operand.name in inputs:
        return inputs[operand.name].view(np.uint8)
    return np.full(operand.storage_elements * np.dtype(operand.dtype).itemsize, UNWRITTEN_BYTE, np.uint8)


def _wrong(operand: Operand, before: Bytes, after: Bytes, expected: Expected | None) -> list[str]:
    if expected is None:
        return [] if np.array_equal(before, after) else [f"{operand.name} was written, which is only read"]
    found = []
    storage = after.copy().view(operand.dtype)
    values = strided(operand, storage)[expected.where]  # type: ignore[index]  # whatever NumPy takes
    if expected.value.dtype.kind in "iu":
        off = values != expected.value
    else:
        with np.errstate(invalid="ignore"):
            off = ~(np.abs(values.astype(np.float64) - expected.value) <= expected.bound)
    if off.any():
        first = tuple(int(axis[0]) for axis in np.nonzero(off))
        example = f"element {first} is {values[first]}, expected {expected.value[first]}"
        found.append(f"{int(off.sum())} of {off.size} elements of {operand.name} are wrong; {example}")
    belongs = np.zeros(storage.size, bool)
    strided(operand, belongs, writeable=True)[...] = True
    apart = np.repeat(~belongs, storage.itemsize)
    if not np.array_equal(after[apart], before[apart]):
        found.append(f"elements between the rows of {operand.name} were written")
    return found
