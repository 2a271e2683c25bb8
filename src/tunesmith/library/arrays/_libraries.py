"""Arrays as their libraries show them: NumPy, torch, the CUDA array interface; none of them is loaded for this."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import UserError

from ._dlpack import HOST, imported
from ._view import View, natural_strides

Array = NDArray[Any]

UNKNOWN_TO_NUMPY = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e5m2": "int8"}
"""Types of torch that NumPy has only by `ml_dtypes`, with types of the same size that it has itself."""


@dataclass(frozen=True, slots=True)
class NumPyArrays:
    """How NumPy makes arrays. New ones begin at a multiple of `alignment` bytes, as a device likes them."""

    alignment: int
    torch: Any = None

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """Row-major and uninitialised; `dtype` is NumPy's name."""
        size = prod(shape) * np.dtype(dtype).itemsize
        raw = np.empty(size + self.alignment, np.uint8)
        start = -raw.ctypes.data % self.alignment
        return raw[start : start + size].view(dtype).reshape(shape)

    def strided(self, storage: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        """A view of one-dimensional storage; strides are in elements."""
        return spread(storage, shape, strides)

    def copy(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Aligned and in the machine's byte order, its axes from the slowest to the fastest in this order."""
        return np.array(x.transpose(axes), x.dtype.newbyteorder("="), order="C").transpose(inverse(axes))


@dataclass(frozen=True, slots=True)
class TorchArrays:
    """The same for torch's tensors, on `device`."""

    torch: Any
    device: Any

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        return self.torch.empty(tuple(shape), dtype=getattr(self.torch, dtype), device=self.device)

    def strided(self, storage: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        return storage.as_strided(shape, strides)

    def copy(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes).clone(memory_format=self.torch.contiguous_format).permute(inverse(axes))


Arrays = NumPyArrays | TorchArrays


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


# --- views ------------------------------------------------------------------------------------------------------------


def view_of_numpy(x: Array) -> View:
    dtype, native, writeable = native_name(x.dtype), x.dtype.isnative, x.flags.writeable
    return View(dtype, x.itemsize, x.shape, x.strides, x.ctypes.data, not writeable, on_host=True, native=native)


def view_of_torch(tensor: Any) -> View:
    """A torch tensor on a GPU."""
    size = tensor.element_size()
    strides = tuple(step * size for step in tensor.stride())
    shape, number = tuple(tensor.shape), tensor.get_device()
    return View(torch_name(tensor.dtype), size, shape, strides, tensor.data_ptr(), number=number, owner=tensor)


def view_of_interface(given: Any, name: str) -> View:
    """What an object with the CUDA array interface, version 3, says. Raises ValueError for a masked array."""
    interface = given.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ValueError(f"{name} is masked; give an array without a mask")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    address, read_only = interface["data"]
    strides = tuple(interface.get("strides") or natural_strides(shape, dtype.itemsize))
    written_on = interface.get("stream")
    known = native_name(dtype) if dtype.isnative else f"{native_name(dtype)} in another byte order"
    return View(known, dtype.itemsize, shape, strides, address, bool(read_only), written_on, owner=given)


def view_on_gpu(given: Any, name: str, handle: int, beside: str) -> View:
    """An array of any library on a GPU, whose producer has made its work visible to that stream; `beside` names another
    that lies there."""
    if hasattr(given, "__cuda_array_interface__"):
        return view_of_interface(given, name)
    if hasattr(given, "__dlpack__"):
        return imported(given, name, handle, beside)
    raise TypeError(f"{name} is a {type(given).__name__}, {beside} lies on a GPU: give an array that lies there too")


def common_gpu(views: Any) -> str:
    """The selector of the GPU that all lie on. Raises ValueError for several, and where there is no element."""
    found = sorted({view.selector for view in views if view.selector})
    if len(found) != 1:
        where = f"lie on {' and '.join(found)}: move them to one GPU first" if found else "are all empty"
        raise ValueError(f"the arrays {where}")
    return str(found[0])


def torch_if_there(given: Any, name: str, stream: Any) -> tuple[Any, bool]:
    """torch, where `given` is a tensor of it, else None; and whether it lies on a GPU. torch is never loaded for this.
    Raises ValueError for a stream that does not go with it."""
    torch = torch_of(given)
    there = on_gpu(given) if torch is None else given.is_cuda
    if stream is not None:
        if not there:
            raise ValueError(f"{name} lies on the host; a stream goes with memory of a GPU")
        if torch is not None:
            raise ValueError("torch tensors go on torch's current stream: use torch.cuda.stream(...)")
    return torch, there


def check_tensors(torch: Any, given: Mapping[str, Any]) -> None:
    """Raises TypeError for what is no dense tensor, ValueError where one lies elsewhere than the first, UserError for
    one that autograd follows. None is left out."""
    beside, first = next(iter(given.items()))
    for name, x in given.items():
        if x is None:
            continue
        if not isinstance(x, torch.Tensor) or x.layout is not torch.strided:
            what = f"a tensor of layout {x.layout}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"
            raise TypeError(
                f"{name} is {what}; {beside} is a tensor on a GPU, and the others are dense tensors there too"
            )
        if x.device != first.device:
            raise ValueError(f"{name} lies on {x.device}, {beside} on {first.device}: move them to one GPU first")
        if x.requires_grad and torch.is_grad_enabled():
            raise no_gradient()


# --- the host's memory ------------------------------------------------------------------------------------------------


def torch_of(given: Any) -> Any:
    """torch, where `given` is a tensor of it; else None. It is never loaded for this."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(given, torch.Tensor) else None


def on_gpu(given: Any) -> bool:
    """Whether an array of some library lies on a GPU, by what it says of itself."""
    if isinstance(given, np.ndarray):
        return False
    if hasattr(given, "__cuda_array_interface__"):
        return True
    return hasattr(given, "__dlpack_device__") and int(given.__dlpack_device__()[0]) not in HOST


def host_array(given: Any, name: str, beside: str) -> Any:
    """What lies on the host, as NumPy takes it: its memory where it has some. Raises ValueError for what lies on a
    GPU (`beside` names another that does not), TypeError for a masked array, UserError for a tensor that autograd
    follows."""
    if isinstance(given, np.ndarray):
        check_unmasked(given, name)
        return given
    if torch := torch_of(given):
        if not given.is_cpu:
            raise ValueError(f"{name} lies on {given.device}; {beside} lies on the host: move them to one device first")
        if torch.is_grad_enabled() and given.requires_grad:
            raise no_gradient()
        return torch_on_host(given)
    if hasattr(given, "__cuda_array_interface__"):
        raise ValueError(f"{name} lies on a GPU, {beside} on the host: move them to one device first")
    return np.from_dlpack(given) if hasattr(given, "__dlpack__") else np.asarray(given)


def check_unmasked(given: Array, name: str) -> None:
    """Raises TypeError for a masked array: no kernel looks at a mask."""
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: give {name}.filled(0), or {name}.data")


def torch_on_host(tensor: Any) -> Array:
    """A torch tensor's own memory as a NumPy array. Types that NumPy lacks are those of `ml_dtypes`."""
    torch, name = sys.modules["torch"], torch_name(tensor.dtype)
    if stand_in := UNKNOWN_TO_NUMPY.get(name):
        import ml_dtypes

        array: Array = tensor.detach().view(getattr(torch, stand_in)).numpy()
        return array.view(getattr(ml_dtypes, name))
    shown: Array = tensor.detach().numpy()
    return shown


def as_tensor(torch: Any, array: Array) -> Any:
    """The inverse of `torch_on_host`."""
    name = array.dtype.name
    if stand_in := UNKNOWN_TO_NUMPY.get(name):
        return torch.from_numpy(array.view(stand_in)).view(getattr(torch, name))
    return torch.from_numpy(array)


def no_gradient() -> UserError:
    """For a tensor that autograd follows."""
    what = "a launch has no gradient, and an argument requires one"
    return UserError("the library", what, "call it under torch.no_grad(), or give it x.detach()")


def spread(storage: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A view of one-dimensional storage; strides are in elements."""
    words = _words(storage)
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(words, shape, steps, writeable=words.flags.writeable).view(storage.dtype)


def storage_of(x: Array) -> Array:
    """The memory from the first element to the last, as a one-dimensional array; strides are not negative."""
    flags = x.flags
    if flags.c_contiguous:
        return x.reshape(-1)
    if flags.f_contiguous:
        return x.T.reshape(-1)
    span = 1 + sum((extent - 1) * (stride // x.itemsize) for extent, stride in zip(x.shape, x.strides, strict=True))
    words = _words(x)
    return np.lib.stride_tricks.as_strided(words, (span,), (x.itemsize,), writeable=flags.writeable).view(x.dtype)


def _words(x: Array) -> Array:
    """The array itself; as integers where its type comes from `ml_dtypes`, of which NumPy makes no strided views."""
    return x.view(f"u{x.itemsize}") if x.dtype.isbuiltin != 1 else x


# --- names of types ---------------------------------------------------------------------------------------------------


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
def native_name(dtype: np.dtype[Any]) -> str:
    """NumPy's name, whatever the byte order."""
    return dtype.newbyteorder("=").name
