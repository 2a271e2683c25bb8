"""Torch tensors as flat NumPy arrays of their memory, and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

FlatArray = NDArray[Any]


def flat_contents(tensor: Any, extent: int) -> FlatArray:
    """The `extent` elements of memory from a tensor's first on, in NumPy's data type of the same name, all finite."""
    flat = np.zeros(extent, np.dtype(str(tensor.dtype).removeprefix("torch.")))
    copy_contents(tensor, flat)
    return flat


def copy_contents(tensor: Any, flat: FlatArray) -> None:
    """Copy as many elements as a flat array of zeros has, from memory from a tensor's first on. All are finite then.

    Memory that a kernel is yet to write may hold anything. NaN becomes 0, and infinity the largest finite number, so
    that results can be compared.
    """
    import torch

    if tensor.numel() == 0:
        return
    memory = torch.as_strided(tensor.detach(), flat.shape, (1,), tensor.storage_offset())
    if tensor.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        # On a GPU this takes no time, while NumPy takes longer than the copy to the host.
        memory = torch.nan_to_num(memory)
    torch.from_numpy(flat.view(np.uint8)).view(tensor.dtype).copy_(memory)
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        flat[:] = finite(flat)


def finite(array: FlatArray) -> FlatArray:
    """The array with finite numbers only; whole numbers as they are."""
    if array.dtype.kind in "biu":
        return array
    largest = float(ml_dtypes.finfo(array.dtype).max)  # type: ignore[no-untyped-call]
    wide = array.astype(np.float64) if array.dtype.kind == "V" else array
    numbers: FlatArray = np.nan_to_num(wide, nan=0.0, posinf=largest, neginf=-largest)
    return numbers.astype(array.dtype)


def strided_tensor(flat: FlatArray, like: Any) -> Any:
    """A tensor with the contents of a flat array, and the shape, strides, data type and device of `like`."""
    return torch_of(flat, like.dtype, like.device).as_strided(tuple(like.shape), tuple(like.stride()))


def torch_of(flat: FlatArray, dtype: Any, device: Any) -> Any:
    """A flat tensor of a data type of torch on a device, with a copy of the contents of a flat array."""
    import torch

    return torch.frombuffer(bytearray(flat.tobytes()), dtype=torch.uint8).view(dtype).to(device)
