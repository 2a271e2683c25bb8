"""Arrays of numbers as text, for a file that people read otherwise."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {"float32": np.dtype("<f4"), "int32": np.dtype("<i4")}
MOST_NUMBERS = 1 << 24


def packed(array: NDArray[Any]) -> str:
    """The type, the shape, and the compressed numbers, such as `float32 400x9 eNpj...`."""
    name = "int32" if array.dtype.kind == "i" else "float32"
    shape = "x".join(map(str, array.shape))
    data = zlib.compress(np.ascontiguousarray(array, TYPES[name]).tobytes(), 9)
    return f"{name} {shape} {base64.b64encode(data).decode()}"


def unpacked(text: str) -> NDArray[Any]:
    """The array of a text that `packed` made. Raises ValueError for any other text, and for a number that is
    missing (NaN)."""
    name, shape_text, data = text.split(" ")
    shape = tuple(map(int, shape_text.split("x")))
    if name not in TYPES or min(shape) < 0 or math.prod(shape) > MOST_NUMBERS:
        raise ValueError(f"{name} {shape_text} is no array of this kind")
    expected = math.prod(shape) * TYPES[name].itemsize
    try:
        decompress = zlib.decompressobj()
        raw = decompress.decompress(base64.b64decode(data, validate=True), expected + 1)
    except (zlib.error, binascii.Error) as error:
        raise ValueError(f"its numbers are damaged ({error})") from error
    if len(raw) != expected or not decompress.eof:
        raise ValueError(f"it has other numbers than {shape_text}")
    array = np.frombuffer(raw, TYPES[name]).reshape(shape)
    if np.isnan(array).any():
        raise ValueError("a number is missing")
    return array
