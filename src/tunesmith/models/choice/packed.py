"""Arrays of numbers as text, for a file that people read otherwise."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {name: np.dtype(name).newbyteorder("<") for name in ("uint8", "int16", "int32", "float32")}
"""From the narrowest to the widest. Whole numbers are stored in the first type that can hold all of them."""
MOST_NUMBERS = 1 << 24


def packed(array: NDArray[Any]) -> str:
    """The type, the shape, and the compressed numbers, such as `float32 400x9 eNpj...`: first the lowest byte of each
    number, then the next of each, since like bytes compress better beside each other.

    Raises ValueError for whole numbers that no type can hold.
    """
    name = next((name for name, kind in TYPES.items() if _holds(kind, array)), None)
    if name is None:
        raise ValueError("a whole number is beyond 32 bits")
    shape = "x".join(map(str, array.shape))
    numbers = np.ascontiguousarray(array, TYPES[name]).reshape(-1, 1).view(np.uint8)
    return f"{name} {shape} {base64.b64encode(zlib.compress(numbers.T.tobytes(), 9)).decode()}"


def unpacked(text: str) -> NDArray[Any]:
    """The array of a text that `packed` made. Raises ValueError for any other text, and for a number that is
    missing (NaN)."""
    name, shape_text, data = text.split(" ")
    shape = tuple(map(int, shape_text.split("x")))
    if name not in TYPES or min(shape) < 0 or math.prod(shape) > MOST_NUMBERS:
        raise ValueError(f"{name} {shape_text} is no array of this kind")
    width = TYPES[name].itemsize
    expected = math.prod(shape) * width
    try:
        decompress = zlib.decompressobj()
        raw = decompress.decompress(base64.b64decode(data, validate=True), expected + 1)
    except (zlib.error, binascii.Error) as error:
        raise ValueError(f"its numbers are damaged ({error})") from error
    if len(raw) != expected or not decompress.eof:
        raise ValueError(f"it has other numbers than {shape_text}")
    numbers = np.ascontiguousarray(np.frombuffer(raw, np.uint8).reshape(width, -1).T)
    array = numbers.view(TYPES[name]).reshape(shape)
    if np.isnan(array).any():
        raise ValueError("a number is missing")
    return array


def _holds(kind: np.dtype[Any], array: NDArray[Any]) -> bool:
    """Whether a type can hold an array's numbers; floating-point numbers are rounded to it."""
    if kind.kind == "f" or array.dtype.kind not in "iu":
        return (kind.kind == "f") == (array.dtype.kind not in "iu")
    limits = np.iinfo(kind)
    return not array.size or bool(limits.min <= array.min() <= array.max() <= limits.max)
