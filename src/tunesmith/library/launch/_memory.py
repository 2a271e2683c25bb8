"""Device memory that launches need: pieces that are used again and again, and the caller's arrays where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tunesmith.devices import Buffer, Device
from tunesmith.devices.cuda.device import CudaDevice, CudaMemory
from tunesmith.library.arrays._libraries import Array, spread, storage_of
from tunesmith.library.arrays._streams import not_ready
from tunesmith.records import ZEROED_HEAD, Plan


class Pool:
    """One buffer for each name, as large as the largest so far: launches that use it come one at a time."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._held: dict[str, tuple[int, Buffer]] = {}
        self.generation = 0
        """Counts up whenever a buffer is replaced, so that what is bound to the old one is not used again."""

    def get(self, name: str) -> Buffer | None:
        _, buffer = self._held.get(name, (0, None))
        return buffer

    def at_least(self, name: str, size: int) -> Buffer:
        """The buffer of that name, replaced where it has fewer than so many bytes."""
        held, buffer = self._held.get(name, (-1, None))
        if held < size:
            if buffer is not None:
                del self._held[name]
                self.generation += 1
                self._device.release(buffer)
            buffer = self._device.allocate(size)
            self._held[name] = size, buffer
        return buffer

    def close(self) -> None:
        self._device.release(*(buffer for _, buffer in self._held.values()))
        self._held.clear()


@contextmanager
def lent(device: Device, pool: Pool, arrays: Mapping[str, Array], roles: Mapping[str, str]) -> Iterator[Buffers]:
    """Buffers of NumPy arrays by name: their own memory where the device shares it, else copies in the pool.

    `roles` are those of `Operand`; the default is "in". What was written is in the arrays on leaving, if all went well,
    and what lies between their elements is left alone.
    """
    kept: dict[str, Buffer] = {}
    wrapped: dict[str, Buffer] = {}
    try:
        for name, array in arrays.items():
            role, storage = roles.get(name, "in"), storage_of(array)
            if role == "in":
                # So wrapped, the device need not show the host what it cannot have written.
                storage = storage.view()
                storage.flags.writeable = False
            buffer = device.wrap(storage)
            if buffer is not None:
                wrapped[name] = buffer
                continue
            kept[name] = pool.at_least(name, storage.nbytes)
            if role != "out":
                device.write(kept[name], storage.view(np.uint8))
        yield {**kept, **wrapped}
        device.synchronize()
        for name in kept:
            array = arrays[name]
            if roles.get(name, "in") != "in":
                copy = device.read(kept[name], storage_of(array).nbytes).view(array.dtype)
                array[...] = spread(copy, array.shape, tuple(stride // array.itemsize for stride in array.strides))
    finally:
        device.release(*wrapped.values())


Buffers = dict[str, Any]


class Workspaces:
    """Memory that plans work in on one GPU: a piece for each stream, so that no two streams share one.

    A stream's piece grows with what is asked for; work on the stream that uses it comes in order. Its first ZEROED_HEAD
    bytes are 0 between plans: those that need zeros take turns there and leave them, all others work behind.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._held: dict[int, CudaMemory] = {}

    def of(self, stream: int, plan: Plan) -> int:
        """The address of a plan's workspace for work on that stream; 0 for none. Raises UserError where one would have
        to be allocated while the stream is captured."""
        if not plan.workspace_bytes:
            return 0
        ahead = 0 if plan.zeroed else ZEROED_HEAD
        size = ahead + plan.workspace_bytes
        held = self._held.get(stream)
        if held is None or held.size < size:
            held = self._grown(stream, size)
        return held.address + ahead

    def close(self) -> None:
        self._device.release(*self._held.values())
        self._held.clear()

    def _grown(self, stream: int, size: int) -> CudaMemory:
        with self._device.on(stream):
            if self._device.capturing():
                raise not_ready()
            if before := self._held.pop(stream, None):
                self._device.release(before)  # the driver waits for the work that uses it
            self._held[stream] = made = self._device.allocate(max(size, ZEROED_HEAD))
            self._device.write(made, np.zeros(ZEROED_HEAD, np.uint8))
        return made
