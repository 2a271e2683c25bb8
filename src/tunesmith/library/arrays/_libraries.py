"""Reads and makes arrays of NumPy, torch and other libraries. Only NumPy is imported for this."""

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
"""Data types of torch that NumPy has only by `ml_dtypes`, with NumPy's own types of the same size."""


@dataclass(frozen=True, slots=True)
class NumPyArrays:
    """Makes NumPy arrays that begin at a multiple of `alignment` bytes, as a device prefers."""

    alignment: int
    torch: Any = None

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """A row-major, uninitialised array; `dtype` is NumPy's name."""
        size = prod(shape) * np.dtype(dtype).itemsize
        raw = np.empty(size + self.alignment, np.uint8)
        start = -raw.ctypes.data % self.alignment
        return raw[start : start + size].view(dtype).reshape(shape)

    def strided(self, storage: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        """A view of one-dimensional storage; strides are in elements."""
        return spread(storage, shape, strides)

    def copy(self, x: Array, axes: tuple[int, ...]) -> Array:
        """An aligned copy in the machine's byte order. `axes` are its axes from the slowest to the fastest."""
        return np.array(x.transpose(axes), x.dtype.newbyteorder("="), order="C").transpose(inverse(axes))


@dataclass(frozen=True, slots=True)
class TorchArrays:
    """Makes torch tensors on `device`, with the methods of `NumPyArrays`."""

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
    """The view of a torch tensor on a GPU."""
    size = tensor.element_size()
    strides = tuple(step * size for step in tensor.stride())
    shape, number = tuple(tensor.shape), tensor.get_device()
    return View(torch_name(tensor.dtype), size, shape, strides, tensor.data_ptr(), number=number, owner=tensor)


def view_of_interface(array: Any, name: str) -> View:
    """The view of an object with the CUDA array interface, version 3. Raises ValueError for a masked array."""
    interface = array.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ValueError(f"{name} is masked; give an array without a mask")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    address, read_only = interface["data"]
    strides = tuple(interface.get("strides") or natural_strides(shape, dtype.itemsize))
    written_on = interface.get("stream")
    type_name = native_name(dtype) if dtype.isnative else f"{native_name(dtype)} in another byte order"
    return View(type_name, dtype.itemsize, shape, strides, address, bool(read_only), written_on, owner=array)


def view_on_gpu(array: Any, name: str, handle: int, beside: str) -> View:
    """The view of a GPU array of any library, after its producer has made its work visible to the stream `handle`.
    `beside` names another argument on a GPU, for messages."""
    if hasattr(array, "__cuda_array_interface__"):
        return view_of_interface(array, name)
    if hasattr(array, "__dlpack__"):
        return imported(array, name, handle, beside)
    raise TypeError(f"{name} is a {type(array).__name__}, {beside} lies on a GPU: give an array that lies there too")


def common_gpu(views: Any) -> str:
    """The selector of the GPU that all views lie on. Raises ValueError for several GPUs, and if all views are empty."""
    selectors = sorted({view.selector for view in views if view.selector})
    if len(selectors) != 1:
        what = f"lie on {' and '.join(selectors)}: move them to one GPU first" if selectors else "are all empty"
        raise ValueError(f"the arrays {what}")
    return str(selectors[0])


def torch_and_gpu(array: Any, name: str, stream: Any) -> tuple[Any, bool]:
    """The torch module if `array` is a torch tensor, else None; and whether `array` lies on a GPU. torch is never
    imported for this. Raises ValueError for a stream beside an array on the host or a torch tensor."""
    torch = torch_of(array)
    is_on_gpu = on_gpu(array) if torch is None else array.is_cuda
    if stream is not None:
        if not is_on_gpu:
            raise ValueError(f"{name} lies on the host; a stream goes with memory of a GPU")
        if torch is not None:
            raise ValueError("torch tensors go on torch's current stream: use torch.cuda.stream(...)")
    return torch, is_on_gpu


def check_tensors(torch: Any, arguments: Mapping[str, Any]) -> None:
    """Check arguments that stand beside a torch tensor on a GPU, the first argument; None is skipped.

    Raises TypeError for an argument that is no dense tensor, ValueError for a tensor on another device, UserError for a
    tensor that requires a gradient.
    """
    beside, first = next(iter(arguments.items()))
    for name, x in arguments.items():
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


def torch_of(array: Any) -> Any:
    """The torch module if `array` is a torch tensor, else None. torch is never imported for this."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def on_gpu(array: Any) -> bool:
    """Whether an array of any library lies on a GPU, by its CUDA array interface or its DLPack device."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, "__cuda_array_interface__"):
        return True
    return hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) not in HOST


def host_array(array: Any, name: str, beside: str) -> Any:
    """An array on the host as a NumPy array, which shares its memory if possible. Raises ValueError for an array on a
    GPU (`beside` names an argument on the host, for the message), TypeError for a masked array, UserError for a tensor
    that requires a gradient."""
    if isinstance(array, np.ndarray):
        check_unmasked(array, name)
        return array
    if torch := torch_of(array):
        if not array.is_cpu:
            raise ValueError(f"{name} lies on {array.device}; {beside} lies on the host: move them to one device first")
        if torch.is_grad_enabled() and array.requires_grad:
            raise no_gradient()
        return torch_on_host(array)
    if hasattr(array, "__cuda_array_interface__"):
        raise ValueError(f"{name} lies on a GPU, {beside} on the host: move them to one device first")
    return np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)


def check_unmasked(array: Array, name: str) -> None:
    """Raises TypeError for a masked array: kernels do not read masks."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: give {name}.filled(0), or {name}.data")


def torch_on_host(tensor: Any) -> Array:
    """A NumPy array that shares a torch tensor's memory. Data types that NumPy lacks become those of `ml_dtypes`."""
    torch, name = sys.modules["torch"], torch_name(tensor.dtype)
    if stand_in := UNKNOWN_TO_NUMPY.get(name):
        import ml_dtypes

        array: Array = tensor.detach().view(getattr(torch, stand_in)).numpy()
        return array.view(getattr(ml_dtypes, name))
    plain: Array = tensor.detach().numpy()
    return plain


def as_tensor(torch: Any, array: Array) -> Any:
    """The inverse of `torch_on_host`."""
    name = array.dtype.name
    if stand_in := UNKNOWN_TO_NUMPY.get(name):
        return torch.from_numpy(array.view(stand_in)).view(getattr(torch, name))
    return torch.from_numpy(array)


def no_gradient() -> UserError:
    """The error for a tensor that requires a gradient."""
    what = "a launch has no gradient, and an argument requires one"
    return UserError("the library", what, "call it under torch.no_grad(), or give it x.detach()")


def spread(storage: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A view of one-dimensional storage; strides are in elements."""
    words = _words(storage)
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(words, shape, steps, writeable=words.flags.writeable).view(storage.dtype)


def storage_of(x: Array) -> Array:
    """The memory from the first element to the last, as a one-dimensional array; strides must not be negative."""
    flags = x.flags
    if flags.c_contiguous:
        return x.reshape(-1)
    if flags.f_contiguous:
        return x.T.reshape(-1)
    span = 1 + sum((extent - 1) * (stride // x.itemsize) for extent, stride in zip(x.shape, x.strides, strict=True))
    words = _words(x)
    return np.lib.stride_tricks.as_strided(words, (span,), (x.itemsize,), writeable=flags.writeable).view(x.dtype)


def _words(x: Array) -> Array:
    """The array itself; as integers if its type is from `ml_dtypes`, since NumPy makes no strided views of those."""
    return x.view(f"u{x.itemsize}") if x.dtype.isbuiltin != 1 else x


# --- names of types ---------------------------------------------------------------------------------------------------


@cache
def torch_name(dtype: Any) -> str:
    """torch's name of a data type, which is NumPy's name for types that both have."""
    return str(dtype).removeprefix("torch.")


@cache
def dtype_name(dtype: Any) -> str:
    """NumPy's name of a data type that is given as NumPy's or torch's. Raises TypeError for anything else."""
    name = torch_name(dtype)
    return name if name in UNKNOWN_TO_NUMPY or name != str(dtype) else np.dtype(dtype).name


@cache
def native_name(dtype: np.dtype[Any]) -> str:
    """NumPy's name of a data type, whatever its byte order."""
    return dtype.newbyteorder("=").name
