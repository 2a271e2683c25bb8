"""Array types that the generators of this folder share, and `distinct`, which removes repeated numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Int64 = NDArray[np.int64]


def distinct(values: Int64) -> tuple[Int64, NDArray[np.intp]]:
    """Sorted numbers, each once, that contain all `values`; and the index of each value among them.

    If the values lie close together, the numbers are all between the extremes, which needs no sorting.
    """
    low, high = int(values.min()), int(values.max())
    if high - low < 2 * len(values):
        return np.arange(low, high + 1), values - low
    return np.unique(values, return_inverse=True)
