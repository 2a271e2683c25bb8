"""CUDA streams of other libraries, by torch, `__cuda_array_interface__` and `__cuda_stream__`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tunesmith.records import UserError

from ._view import View

if TYPE_CHECKING:
    from tunesmith.devices.cuda.device import CudaDevice

DEFAULT, PER_THREAD = (0, 1), 2
"""Handles of CUDA's default stream, and the handle of the calling thread's default stream."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A CUDA stream by its handle, with the caller's object that keeps the stream alive, if any."""

    handle: int
    owner: Any = None

    @property
    def lasts(self) -> bool:
        """Whether the handle still means the same stream at a later call."""
        return self.handle in DEFAULT or (self.owner is not None and self.handle != PER_THREAD)


def stream_of(stream: Any) -> Stream | None:
    """The stream of a handle, or of an object with a handle: torch's `cuda_stream`, or the protocol `__cuda_stream__`;
    None for None."""
    if stream is None:
        return None
    if hasattr(stream, "__index__"):
        return Stream(operator.index(stream))
    if hasattr(stream, "cuda_stream"):
        return Stream(int(stream.cuda_stream), stream)
    if hasattr(stream, "__cuda_stream__"):
        answer = stream.__cuda_stream__
        _, handle = answer() if callable(answer) else answer
        return Stream(int(handle), stream)
    raise TypeError(f"stream is a {type(stream).__name__}; give a handle, or an object with __cuda_stream__")


def current_stream(torch: Any, ordinal: int) -> Stream:
    """torch's current stream on that GPU."""
    stream = torch.cuda.current_stream(ordinal)
    return Stream(stream.cuda_stream, stream)


@cache
def current_handle(torch: Any) -> Callable[[int], int]:
    """A function from a GPU's ordinal to the handle of torch's current stream there; torch's fastest one if it has
    that."""
    fastest = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return fastest or (lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream))


def handle_for(arrays: Iterable[Any], stream: Any) -> int:
    """The handle of `stream`. Without a `stream`: the handle of the first stream on which an array says that it was
    written, else of CUDA's default stream."""
    if given_stream := stream_of(stream):
        return given_stream.handle
    interfaces = (getattr(x, "__cuda_array_interface__", None) or {} for x in arrays if x is not None)
    return next((int(named) for interface in interfaces if (named := interface.get("stream"))), DEFAULT[-1])


def follow(device: CudaDevice, views: Iterable[View], handle: int) -> None:
    """Make the stream `handle` wait for the other streams on which the arrays were written."""
    others = {view.written_on for view in views if view.written_on} - {handle}
    if not others:
        return
    from tunesmith.devices.cuda.device import Mark

    for other in sorted(others):
        with device.on(other):
            mark = Mark()
            device.record(mark)
        with device.on(handle):
            device.follow(mark)


def not_ready() -> UserError:
    """The error for a call that would have to compile or allocate while its stream is captured."""
    what = "work is being captured into a graph, and this call is not ready yet"
    remedy = "make the same call once before the capture: same shapes, strides, data types and arguments"
    return UserError("the library", what, remedy)
