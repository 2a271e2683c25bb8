"""The algorithms by the value of `PortBlasAlgorithm`. A new algorithm is a file, a source, and a line here."""

from __future__ import annotations

from .algorithm import Algorithm
from .direct import Direct
from .interleaved import Interleaved
from .naive import Naive
from .staged import Staged, TallSkinny

ALGORITHMS: dict[str, Algorithm] = {
    "local": Staged(),
    "non_local": Direct(),
    "interleaved": Interleaved(),
    "naive": Naive(),
    "tall_skinny": TallSkinny(),
}
