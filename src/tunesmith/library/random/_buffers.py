"""The buffers that a generator can fill: NumPy arrays, torch tensors, and memory of a GPU that another library owns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.library.arrays._libraries import (
    UNKNOWN_TO_NUMPY,
    check_unmasked,
    torch_name,
    torch_of,
    torch_on_host,
    view_of_interface,
    view_of_numpy,
)
from tunesmith.library.arrays._streams import Stream, current_stream
from tunesmith.library.arrays._view import View, selector
from tunesmith.problems.random import DTYPES, WIDTHS

SIGNED = {"int8": "unsigned_char", "int16": "unsigned_short", "int32": "unsigned_int", "int64": "unsigned_long_long"}
"""Signed integers get the bits of unsigned integers, so their whole range is used, too."""

VALUE_TYPES = {**{dtype: value_type for value_type, dtype in DTYPES.items()}, **SIGNED}
"""Value types by NumPy's and torch's names of data types."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """`count` elements of type `dtype` (NumPy's name): the flat host `array`, or at `address` on the GPU `selector`.

    `stream` is used if the caller names no stream. If both are None, the generator's own stream is used, which then has
    to wait for the work on the stream `written_on`.
    """

    dtype: str
    count: int
    array: NDArray[Any] | None = None
    address: int = 0
    selector: str = ""
    stream: Stream | None = None
    written_on: int | None = None


def buffer_of(out: Any) -> Buffer:
    """`out` as a buffer. Raises ValueError if it is not contiguous or read-only, TypeError for a masked array and for
    an object that is no buffer."""
    if torch := torch_of(out):
        return _of_torch(torch, out)
    if isinstance(out, np.ndarray):
        return _of_numpy(out)
    if hasattr(out, "__cuda_array_interface__"):
        view = _fillable(view_of_interface(out, "out"))
        return Buffer(view.dtype, view.count, address=view.address, selector=view.selector, written_on=view.written_on)
    kinds = "a NumPy array, a torch tensor or an object with __cuda_array_interface__"
    raise TypeError(f"out is a {type(out).__name__}; give {kinds}")


@cache
def value_type_of(distribution: str, dtype: str) -> str:
    """The value type for a distribution and NumPy's name of a data type. Raises TypeError, which lists the data types
    of the distribution, for any other data type."""
    offered = [name for name, value_type in VALUE_TYPES.items() if value_type in WIDTHS[distribution]]
    if dtype not in offered:
        raise TypeError(f"out is {dtype}; {distribution} numbers come as {', '.join(sorted(offered))}")
    return VALUE_TYPES[dtype]


def _of_numpy(array: NDArray[Any]) -> Buffer:
    check_unmasked(array, "out")
    view = _fillable(view_of_numpy(array))
    dtype = view.dtype if view.native else f"{view.dtype} in another byte order"
    return Buffer(dtype, array.size, array=array.reshape(-1).view(np.ndarray))


def _of_torch(torch: Any, tensor: Any) -> Buffer:
    dtype = torch_name(tensor.dtype)
    if not (tensor.is_cuda or tensor.is_cpu):
        raise TypeError(f"out lies on {tensor.device}; torch tensors are filled on cpu and cuda")
    if not tensor.is_contiguous():
        raise ValueError("out is not contiguous; fill a contiguous tensor, and copy")
    if tensor.is_cuda:
        ordinal = tensor.get_device()
        stream = current_stream(torch, ordinal)
        return Buffer(dtype, tensor.numel(), None, tensor.data_ptr(), selector(ordinal), stream)
    # No distribution has a data type that NumPy lacks.
    return Buffer(dtype, tensor.numel()) if dtype in UNKNOWN_TO_NUMPY else _of_numpy(torch_on_host(tensor))


def _fillable(view: View) -> View:
    if not view.contiguous:
        raise ValueError("out is not contiguous; fill a contiguous array, and copy")
    if view.read_only:
        raise ValueError("out must not be written; give a writeable array")
    return view
