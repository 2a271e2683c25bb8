"""Bytes that no kernel writes by chance: what lies in unwritten outputs, around operands, and in a fresh workspace.

Outputs and surroundings hold different NaNs, so that a NaN that was read beyond an input and carried into the output
is told apart from an element that nobody wrote.
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
"""What outputs hold before each of the runs. A maximum passes over a NaN and a minimum over a huge number, but no
kernel that reads what it should only write gives the same after all three."""
POISONS = range(len(_OUTPUTS))


def itemsize(dtype: str) -> int:
    """Bytes of an element; NumPy itself does not know bfloat16."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def output_pattern(dtype: str, poison: int) -> Bytes:
    """One element's worth of an output's poison, one of POISONS: what still holds each of them after its run was not
    written."""
    return _pattern(dtype, *_OUTPUTS[poison])


def around_pattern(dtype: str) -> Bytes:
    """One element's worth of what surrounds an operand."""
    return _pattern(dtype, _AROUND, _AROUND_BYTE)


def filled(pattern: Bytes, size: int) -> Bytes:
    """`size` bytes of a pattern repeated, beginning with its first byte."""
    return np.tile(pattern, -(-size // len(pattern)))[:size]


def _pattern(dtype: str, floats: dict[str, int], byte: int) -> Bytes:
    size = itemsize(dtype)
    value = floats[dtype].to_bytes(size, "little") if dtype in floats else bytes([byte] * size)
    return np.frombuffer(value, np.uint8)
