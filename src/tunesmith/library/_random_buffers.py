"""What a generator can fill: NumPy arrays, and memory of a GPU that another library owns."""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.random import DTYPES, WIDTHS

SIGNED = {"int8": "unsigned_char", "int16": "unsigned_short", "int32": "unsigned_int", "int64": "unsigned_long_long"}
"""Signed integers get the bits of unsigned ones: all of their range, too."""

VALUE_TYPES = {**{dtype: value_type for value_type, dtype in DTYPES.items()}, **SIGNED}
"""Value types by NumPy's and torch's names of data types."""


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


@dataclass(frozen=True, slots=True)
class Buffer:
    """`count` elements of type `dtype`, NumPy's name: the flat host `array`, or at `address` on the GPU `selector`.

    `stream` is what to work on where the caller names none; None stands for one of the generator's own, which then has
    to wait for what was enqueued on `written_on`.
    """

    dtype: str
    count: int
    array: NDArray[Any] | None = None
    address: int = 0
    selector: str = ""
    stream: Stream | None = None
    written_on: int | None = None


def buffer_of(out: Any) -> Buffer:
    """Raises ValueError for what is not contiguous or must not be written, TypeError for anything that is no buffer."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(out, torch.Tensor):
        return _of_torch(torch, out)
    if isinstance(out, np.ndarray):
        return _of_numpy(out)
    interface = getattr(out, "__cuda_array_interface__", None)
    if interface is None:
        kinds = "a NumPy array, a torch tensor or an object with __cuda_array_interface__"
        raise TypeError(f"out is a {type(out).__name__}; give {kinds}")
    return _of_interface(interface)


@cache
def value_type_of(distribution: str, dtype: str) -> str:
    """Raises TypeError, naming the data types in which the distribution comes, for any other."""
    offered = [name for name, value_type in VALUE_TYPES.items() if value_type in WIDTHS[distribution]]
    if dtype not in offered:
        raise TypeError(f"out is {dtype}; {distribution} numbers come as {', '.join(sorted(offered))}")
    return VALUE_TYPES[dtype]


def stream_of(given: Any) -> Stream | None:
    """A handle, or an object that has one: as torch's `cuda_stream`, or by the protocol `__cuda_stream__`."""
    if given is None:
        return None
    if hasattr(given, "__index__"):
        return Stream(operator.index(given))
    if hasattr(given, "cuda_stream"):
        return Stream(int(given.cuda_stream), given)
    if hasattr(given, "__cuda_stream__"):
        said = given.__cuda_stream__
        _, handle = said() if callable(said) else said
        return Stream(int(handle), given)
    raise TypeError(f"stream is a {type(given).__name__}; give a handle, or an object with __cuda_stream__")


def _of_numpy(array: NDArray[Any]) -> Buffer:
    if not array.flags.c_contiguous:
        raise ValueError("out is not contiguous; fill a contiguous array, and copy")
    if not array.flags.writeable:
        raise ValueError("out must not be written; give a writeable array")
    return Buffer(_named(array.dtype), array.size, array=array.reshape(-1).view(np.ndarray))


def _of_torch(torch: Any, tensor: Any) -> Buffer:
    dtype = _torch_name(tensor.dtype)
    if not (tensor.is_cuda or tensor.is_cpu):
        raise TypeError(f"out lies on {tensor.device}; torch tensors are filled on cpu and cuda")
    if not tensor.is_contiguous():
        raise ValueError("out is not contiguous; fill a contiguous tensor, and copy")
    if tensor.is_cuda:
        ordinal = tensor.get_device()
        stream = torch.cuda.current_stream(ordinal)
        given = Stream(stream.cuda_stream, stream)
        return Buffer(dtype, tensor.numel(), None, tensor.data_ptr(), _selector(ordinal), given)
    # NumPy has no name for some of torch's types; then there are no numbers of that type either.
    if dtype not in VALUE_TYPES:
        return Buffer(dtype, tensor.numel())
    return _of_numpy(tensor.detach().numpy())


def _of_interface(interface: dict[str, Any]) -> Buffer:
    """By the CUDA array interface, version 3."""
    dtype, shape = np.dtype(interface["typestr"]), interface["shape"]
    address, read_only = interface["data"]
    count = prod(shape)
    strides = interface.get("strides")
    if read_only:
        raise ValueError("out must not be written; give a writeable array")
    if interface.get("mask") is not None:
        raise ValueError("out is masked; give an array without a mask")
    if strides is not None and count and not _contiguous(shape, strides, dtype.itemsize):
        raise ValueError("out is not contiguous; fill a contiguous array, and copy")
    selector = _selector(_ordinal(address)) if count else ""
    return Buffer(_named(dtype), count, address=address, selector=selector, written_on=interface.get("stream"))


def _ordinal(address: int) -> int:
    from tunesmith.devices.cuda import ordinal_of

    return ordinal_of(address)


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != size:
            return False
        size *= extent
    return True


@cache
def _torch_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


@cache
def _selector(ordinal: int) -> str:
    return f"CUDA:{ordinal}"


@cache
def _named(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.isnative else f"{dtype.name} in another byte order"
