"""Memory and streams of other libraries: what torch, `__cuda_array_interface__` and `__cuda_stream__` say of them."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import UserError

DEFAULT, PER_THREAD = (0, 1), 2
"""Handles of CUDA's default stream, and of that of the calling thread."""

HOST = (1, 3)
"""DLPack's kinds of devices whose memory is the host's: the CPU, and memory pinned for a GPU."""

UNKNOWN_TO_NUMPY = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e5m2": "int8"}
"""Types of torch that NumPy has only by `ml_dtypes`, with types of the same size that it has itself."""


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
class Foreign:
    """An array on a GPU by its interface: NumPy's name of its type, strides in bytes, and where it was written."""

    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    read_only: bool
    written_on: int | None
    number: int | None
    """The GPU's; None where only the driver can tell."""
    owner: Any = None
    """What keeps the memory alive."""

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def selector(self) -> str:
        """The GPU's; nothing for an empty array, which may lie nowhere."""
        if not self.count:
            return ""
        return selector(ordinal(self.address) if self.number is None else self.number)


def torch_of(given: Any) -> Any:
    """torch, where `given` is a tensor of it; else None. It is never loaded for this."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(given, torch.Tensor) else None


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


def current_stream(torch: Any, ordinal: int) -> Stream:
    """torch's, of that GPU."""
    stream = torch.cuda.current_stream(ordinal)
    return Stream(stream.cuda_stream, stream)


@cache
def current_handle(torch: Any) -> Callable[[int], int]:
    """What gives the handle of torch's current stream of a GPU; by the way that costs least, where torch has it."""
    cheap = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return cheap or (lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream))


def on_host(tensor: Any) -> NDArray[Any]:
    """A torch tensor's own memory as a NumPy array. Types that NumPy lacks are those of `ml_dtypes`."""
    torch, name = sys.modules["torch"], torch_name(tensor.dtype)
    if stand_in := UNKNOWN_TO_NUMPY.get(name):
        import ml_dtypes

        array: NDArray[Any] = tensor.detach().view(getattr(torch, stand_in)).numpy()
        return array.view(getattr(ml_dtypes, name))
    shown: NDArray[Any] = tensor.detach().numpy()
    return shown


def as_tensor(torch: Any, array: NDArray[Any]) -> Any:
    """The inverse of `on_host`."""
    name = array.dtype.name
    if stand_in := UNKNOWN_TO_NUMPY.get(name):
        return torch.from_numpy(array.view(stand_in)).view(getattr(torch, name))
    return torch.from_numpy(array)


def host_array(given: Any, name: str) -> Any:
    """What lies on the host, as NumPy takes it: its memory where it has some. Raises ValueError for what lies on a GPU,
    and for a tensor that autograd follows."""
    if given is None or isinstance(given, np.ndarray):
        return given
    if torch := torch_of(given):
        if not given.is_cpu:
            raise ValueError(f"{name} lies on {given.device}; a lies on the host: move them to one device first")
        if torch.is_grad_enabled() and given.requires_grad:
            raise no_gradient()
        return on_host(given)
    if hasattr(given, "__cuda_array_interface__"):
        raise ValueError(f"{name} lies on a GPU, a on the host: move them to one device first")
    return np.from_dlpack(given) if hasattr(given, "__dlpack__") else given


def on_gpu(given: Any) -> bool:
    """Whether an array of some library lies on a GPU, by what it says of itself."""
    if isinstance(given, np.ndarray):
        return False
    if hasattr(given, "__cuda_array_interface__"):
        return True
    return hasattr(given, "__dlpack_device__") and int(given.__dlpack_device__()[0]) not in HOST


def no_gradient() -> UserError:
    """For a tensor that autograd follows."""
    what = "matmul has no gradient, and an argument requires one"
    return UserError("matmul", what, "call it under torch.no_grad(), or give it x.detach()")


def of_torch(tensor: Any) -> Foreign:
    """A torch tensor on a GPU."""
    size, dtype = tensor.element_size(), torch_name(tensor.dtype)
    strides = tuple(step * size for step in tensor.stride())
    shape, address = tuple(tensor.shape), tensor.data_ptr()
    return Foreign(dtype, size, shape, strides, address, False, None, tensor.get_device(), tensor)


def foreign(given: Any, name: str) -> Foreign:
    """What an object with the CUDA array interface, version 3, says. Raises ValueError for a masked array."""
    interface = given.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ValueError(f"{name} is masked; give an array without a mask")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    address, read_only = interface["data"]
    strides = interface.get("strides") or natural_strides(shape, dtype.itemsize)
    return Foreign(
        dtype=native_name(dtype),
        itemsize=dtype.itemsize,
        shape=shape,
        strides=tuple(strides),
        address=address,
        read_only=bool(read_only),
        written_on=interface.get("stream"),
        number=None,
        owner=given,
    )


def natural_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Those of a C-contiguous array, in bytes."""
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


def contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements follow one another as in C."""
    natural = natural_strides(shape, itemsize)
    places = zip(shape, strides, natural, strict=True)
    return 0 in shape or all(extent == 1 or stride == wanted for extent, stride, wanted in places)


def ordinal(address: int) -> int:
    """The number of the GPU that has this address."""
    from tunesmith.devices.cuda import ordinal_of

    return ordinal_of(address)


@cache
def torch_name(dtype: Any) -> str:
    """torch's name of a type, which is NumPy's where both have it."""
    return str(dtype).removeprefix("torch.")


@cache
def dtype_name(given: Any) -> str:
    """NumPy's name of a type that the caller named as NumPy or torch does. Raises TypeError for what names none."""
    name = torch_name(given)
    return name if name in UNKNOWN_TO_NUMPY or name != str(given) else np.dtype(given).name


@cache
def selector(number: int) -> str:
    return f"CUDA:{number}"


@cache
def native_name(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.isnative else f"{dtype.name} in another byte order"
