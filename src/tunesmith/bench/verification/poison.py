"""Byte patterns that no kernel writes by chance. They fill outputs, guard bands and fresh workspaces before a run.

Outputs and guard bands hold different NaNs. So a NaN that was read beyond an input and reached the output differs from
an element that was not written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_NAN = {"float16": 0x7E5A, "bfloat16": 0x7FE5, "float32": 0x7FE5A5A5, "float64": 0x7FF8A5A5A5A5A5A5}
_HUGE = {"float16": 0x7AA5, "bfloat16": 0x7B5A, "float32": 0x7B5A5A5A, "float64": 0x7F5A5A5A5A5A5A5A}
_MINUS_HUGE = {name: word | 1 << (8 * (2 if "16" in name else int(name[-2:]) // 8) - 1) for name, word in _HUGE.items()}
_AROUND = {
    "float8_e4m3fn": 0x7F,
    "float8_e5m2": 0x7E,
    "float16": 0x7E3C,
    "bfloat16": 0x7FC3,
    "float32": 0x7FC3C3C3,
    "float64": 0x7FF8C3C3C3C3C3C3,
}
_AROUND_BYTE = 0xC3
_OUTPUTS = ((_NAN, 0xA5), (_HUGE, 0x5A), (_MINUS_HUGE, 0x3C))
"""The contents of outputs before each of the three runs. A maximum hides a NaN and a minimum hides a huge number, but a
kernel that reads an output that it should only write cannot give the same result after all three."""
POISONS = range(len(_OUTPUTS))


def itemsize(dtype: str) -> int:
    """Bytes of an element; NumPy itself does not know bfloat16."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def is_whole(dtype: str) -> bool:
    """Whether a data type holds whole numbers."""
    return dtype.startswith(("int", "uint"))


def output_pattern(dtype: str, poison: int) -> Bytes:
    """One element of the poison with that number, of POISONS. An element that holds the poison after every run was not
    written."""
    return _pattern(dtype, *_OUTPUTS[poison])


def around_pattern(dtype: str) -> Bytes:
    """One element of an operand's guard bands."""
    return _pattern(dtype, _AROUND, _AROUND_BYTE)


def filled(pattern: Bytes, size: int) -> Bytes:
    """`size` bytes of a pattern repeated, beginning with its first byte."""
    return np.tile(pattern, -(-size // len(pattern)))[:size]


def _pattern(dtype: str, floats: dict[str, int], byte: int) -> Bytes:
    size = itemsize(dtype)
    value = floats[dtype].to_bytes(size, "little") if dtype in floats else bytes([byte] * size)
    return np.frombuffer(value, np.uint8)
