"""Memory that plans work in: a piece for each stream, so that no two streams share one."""

from __future__ import annotations

import numpy as np

from tunesmith.devices.cuda import CudaDevice, Memory
from tunesmith.records import ZEROED_HEAD, Plan, UserError


def not_ready() -> UserError:
    """For a call that would have to compile or to allocate while its stream is captured."""
    what = "work is being captured into a graph, and this call is not ready yet"
    remedy = "make the same call once before the capture: same shapes, strides, data types and arguments"
    return UserError("matmul", what, remedy)


class Workspaces:
    """On one GPU. A stream's piece grows with what is asked for; work on the stream that uses it comes in order.

    Its first ZEROED_HEAD bytes are 0 between plans: those that need zeros take turns there and leave them, all others
    work behind.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._held: dict[int, Memory] = {}

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

    def _grown(self, stream: int, size: int) -> Memory:
        with self._device.on(stream):
            if self._device.capturing():
                raise not_ready()
            if before := self._held.pop(stream, None):
                self._device.release(before)  # the driver waits for the work that uses it
            self._held[stream] = made = self._device.allocate(max(size, ZEROED_HEAD))
            self._device.write(made, np.zeros(ZEROED_HEAD, np.uint8))
        return made
