"""Memory that plans work in: a piece for each stream, so that no two streams share one."""

from __future__ import annotations

from tunesmith.devices.cuda import CudaDevice, Memory
from tunesmith.records import UserError


def not_ready() -> UserError:
    """For a call that would have to compile or to allocate while its stream is captured."""
    what = "work is being captured into a graph, and this call is not ready yet"
    remedy = "make the same call once before the capture: same shapes, strides, data types and arguments"
    return UserError("matmul", what, remedy)


class Workspaces:
    """On one GPU. A stream's piece grows with what is asked for; work on the stream that uses it comes in order."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._held: dict[int, Memory] = {}

    def at_least(self, stream: int, size: int) -> int:
        """The address of a piece of so many bytes for work on that stream; 0 for none. Raises UserError where one would
        have to be allocated while the stream is captured."""
        if not size:
            return 0
        held = self._held.get(stream)
        if held is None or held.size < size:
            held = self._grown(stream, size)
        return held.address

    def close(self) -> None:
        self._device.release(*self._held.values())
        self._held.clear()

    def _grown(self, stream: int, size: int) -> Memory:
        with self._device.on(stream):
            if self._device.capturing():
                raise not_ready()
            if before := self._held.pop(stream, None):
                self._device.release(before)  # the driver waits for the work that uses it
            self._held[stream] = made = self._device.allocate(size)
        return made
