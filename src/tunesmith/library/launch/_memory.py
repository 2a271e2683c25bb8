"""Device memory for launches: buffers and workspaces that are reused, and buffers for the caller's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tunesmith.devices import Buffer, Device
from tunesmith.library.arrays._libraries import Array, spread, storage_of
from tunesmith.library.arrays._streams import not_ready
from tunesmith.records import ZEROED_HEAD, Plan

if TYPE_CHECKING:
    from tunesmith.devices.cuda.device import CudaDevice, CudaMemory


class Pool:
    """One buffer for each name, as large as the largest request so far. Only one launch at a time may use the pool."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffers: dict[str, tuple[int, Buffer]] = {}
        self.generation = 0
        """Increases when a buffer is replaced. Launches bound to an earlier generation must not be used again."""

    def get(self, name: str) -> Buffer | None:
        _, buffer = self._buffers.get(name, (None, None))
        return buffer

    def at_least(self, name: str, size: int) -> Buffer:
        """The buffer of that name, replaced if it has fewer than `size` bytes."""
        present, buffer = self._buffers.get(name, (None, None))
        if present is None or present < size:
            if buffer is not None:
                del self._buffers[name]
                self.generation += 1
                self._device.release(buffer)
            buffer = self._device.allocate(size)
            self._buffers[name] = size, buffer
        return buffer

    def close(self) -> None:
        self._device.release(*(buffer for _, buffer in self._buffers.values()))
        self._buffers.clear()


@contextmanager
def lent(device: Device, pool: Pool, arrays: Mapping[str, Array], roles: Mapping[str, str]) -> Iterator[Buffers]:
    """Buffers for NumPy arrays by name: the arrays' own memory if the device shares it, else copies in the pool.

    `roles` are those of `Operand`; the default is "in". On leaving without an exception, outputs are copied back into
    the arrays. Memory between an array's elements is not changed.
    """
    copies: dict[str, Buffer] = {}
    wrapped: dict[str, Buffer] = {}
    try:
        for name, array in arrays.items():
            role, storage = roles.get(name, "in"), storage_of(array)
            if role == "in":
                # The device need not copy memory back to the host that it wrapped as read-only.
                storage = storage.view()
                storage.flags.writeable = False
            buffer = device.wrap(storage)
            if buffer is not None:
                wrapped[name] = buffer
                continue
            copies[name] = pool.at_least(name, storage.nbytes)
            if role != "out":
                device.write(copies[name], storage.view(np.uint8))
        yield {**copies, **wrapped}
        device.synchronize()
        for name in copies:
            array = arrays[name]
            if roles.get(name, "in") != "in":
                result = device.read(copies[name], storage_of(array).nbytes).view(array.dtype)
                array[...] = spread(result, array.shape, tuple(stride // array.itemsize for stride in array.strides))
    finally:
        device.release(*wrapped.values())


Buffers = dict[str, Any]


class Workspaces:
    """Workspaces of plans on one GPU: a buffer for each stream, since plans on one stream run in order.

    A stream's buffer grows to the largest request. Its first ZEROED_HEAD bytes are 0 between plans: plans that need
    zeros use these bytes and leave zeros behind; all other plans work behind these bytes. `replaced` is called when a
    buffer gives way to a larger one.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._buffers: dict[int, CudaMemory] = {}
        self.replaced: Callable[[], None] | None = None

    def of(self, stream: int, plan: Plan) -> int:
        """The address of a plan's workspace for work on that stream; 0 for a plan without one. Raises UserError if it
        would have to be allocated while the stream is captured."""
        if not plan.workspace_bytes:
            return 0
        offset = 0 if plan.zeroed else ZEROED_HEAD
        size = offset + plan.workspace_bytes
        buffer = self._buffers.get(stream)
        if buffer is None or buffer.size < size:
            buffer = self._grown(stream, size)
        return buffer.address + offset

    def close(self) -> None:
        self._device.release(*self._buffers.values())
        self._buffers.clear()

    def _grown(self, stream: int, size: int) -> CudaMemory:
        with self._device.on(stream):
            if self._device.capturing():
                raise not_ready()
            if smaller := self._buffers.pop(stream, None):
                if self.replaced:
                    self.replaced()
                self._device.release(smaller)  # the driver waits for the work that uses it
            self._buffers[stream] = buffer = self._device.allocate(max(size, ZEROED_HEAD))
            self._device.write(buffer, np.zeros(ZEROED_HEAD, np.uint8))
        return buffer
