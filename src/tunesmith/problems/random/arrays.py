"""What the generators of this folder have in common: types, and numbers without their repetitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Int64 = NDArray[np.int64]


def distinct(values: Int64) -> tuple[Int64, NDArray[np.intp]]:
    """Sorted numbers, each once, that contain all `values`, and where each value is among them.

    Values that lie close together give all numbers between the extremes, without sorting.
    """
    low, high = int(values.min()), int(values.max())
    if high - low < 2 * len(values):
        return np.arange(low, high + 1), values - low
    return np.unique(values, return_inverse=True)
