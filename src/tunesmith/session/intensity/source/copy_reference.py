"""The result that copy.yaml's kernel must give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def copied(sizes: Mapping[str, int], arrays: Mapping[str, NDArray[np.int32]]) -> dict[str, NDArray[np.int32]]:
    return {"target": arrays["source"]}
