"""Bytes that no kernel writes by chance: what lies in unwritten outputs, around operands, and in a fresh workspace.

Outputs and surroundings hold different NaNs, so that a NaN that was read beyond an input and carried into the output
is told apart from an element that nobody wrote.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_OUTPUT = {"float16": 0x7E5A, "bfloat16": 0x7FE5, "float32": 0x7FE5A5A5, "float64": 0x7FF8A5A5A5A5A5A5}
_AROUND = {"float16": 0x7E3C, "bfloat16": 0x7FC3, "float32": 0x7FC3C3C3, "float64": 0x7FF8C3C3C3C3C3C3}
_OUTPUT_BYTE, _OTHER_OUTPUT_BYTE, _AROUND_BYTE = 0xA5, 0x5A, 0xC3


def itemsize(dtype: str) -> int:
    """Bytes of an element; NumPy itself does not know bfloat16."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def is_float(dtype: str) -> bool:
    return dtype in _OUTPUT


def output_pattern(dtype: str, other: bool = False) -> Bytes:
    """One element's worth of poison for an output. Whole numbers have no NaN, so they have an `other` pattern: what
    still holds the poison after a run with each of the two was not written."""
    return _pattern(dtype, _OUTPUT, _OTHER_OUTPUT_BYTE if other else _OUTPUT_BYTE)


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
