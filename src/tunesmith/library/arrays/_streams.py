"""CUDA streams of other libraries: what torch, `__cuda_array_interface__` and `__cuda_stream__` say of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tunesmith.devices.cuda.device import CudaDevice, Mark
from tunesmith.records import UserError

from ._view import View

DEFAULT, PER_THREAD = (0, 1), 2
"""Handles of CUDA's default stream, and of that of the calling thread."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A CUDA stream by its handle, with an object that keeps it alive where the caller gave one."""

    handle: int
    owner: Any = None

    @property
    def lasts(self) -> bool:
        """Whether the same handle is still the same stream at a later call."""
        return self.handle in DEFAULT or (self.owner is not None and self.handle != PER_THREAD)


def stream_of(given: Any) -> Stream | None:
    """A handle, or an object that has one: as torch's `cuda_stream`, or by the protocol `__cuda_stream__`."""
    if given is None:
        return None
    if hasattr(given, "__index__"):
        return Stream(operator.index(given))
    if hasattr(given, "cuda_stream"):
        return Stream(int(given.cuda_stream), given)
    if hasattr(given, "__cuda_stream__"):
        answer = given.__cuda_stream__
        _, handle = answer() if callable(answer) else answer
        return Stream(int(handle), given)
    raise TypeError(f"stream is a {type(given).__name__}; give a handle, or an object with __cuda_stream__")


def current_stream(torch: Any, ordinal: int) -> Stream:
    """torch's, of that GPU."""
    stream = torch.cuda.current_stream(ordinal)
    return Stream(stream.cuda_stream, stream)


@cache
def current_handle(torch: Any) -> Callable[[int], int]:
    """What gives the handle of torch's current stream of a GPU; by the way that costs least, where torch has it."""
    cheap = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return cheap or (lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream))


def handle_for(arrays: Iterable[Any], stream: Any) -> int:
    """The stream that was given; else the first that an array says it was written on, else CUDA's default stream."""
    if asked := stream_of(stream):
        return asked.handle
    interfaces = (getattr(x, "__cuda_array_interface__", None) or {} for x in arrays if x is not None)
    return next((int(named) for interface in interfaces if (named := interface.get("stream"))), DEFAULT[-1])


def follow(device: CudaDevice, views: Iterable[View], handle: int) -> None:
    """Let the stream wait for others on which arrays say that they were written."""
    others = {view.written_on for view in views if view.written_on} - {handle}
    for other in sorted(others):
        with device.on(other):
            mark = Mark()
            device.record(mark)
        with device.on(handle):
            device.follow(mark)


def not_ready() -> UserError:
    """For a call that would have to compile or to allocate while its stream is captured."""
    what = "work is being captured into a graph, and this call is not ready yet"
    remedy = "make the same call once before the capture: same shapes, strides, data types and arguments"
    return UserError("the library", what, remedy)
