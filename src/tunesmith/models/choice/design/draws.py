"""Numbers from 0 to 1 as sizes: log-uniform, aligned, or picked from a list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

Picked = TypeVar("Picked")

ALIGNMENTS = ((0.4, 64), (0.7, 8), (0.85, 2), (1.0, 1))
"""A share up to each bound is a multiple of the number beside it. A multiple of 1 is made odd."""
LAYOUTS = ((0.5, (False, True)), (0.75, (False, False)), (1.0, (True, False)))
"""trans_a and trans_b of a list: linear layers, weights stored k x n, gradients of weights."""


def log_uniform(unit: float, low: int, high: int) -> float:
    """A number between `low` and `high`, so that every octave is as likely as another."""
    return float(low * (high / low) ** unit)


def aligned(size: float, unit: float) -> int:
    """The size nearest to `size` that has the alignment drawn by `unit`, or a smaller alignment if `size` is small."""
    multiple = next(multiple for bound, multiple in ALIGNMENTS if unit < bound)
    while multiple > 1 and multiple > size:
        multiple //= 2
    if multiple == 1:
        return 2 * int(size // 2) + 1
    return max(1, round(size / multiple)) * multiple


def layout(unit: float) -> tuple[bool, bool]:
    """trans_a and trans_b."""
    return next(transposes for bound, transposes in LAYOUTS if unit < bound)


def pick(unit: float, choices: Sequence[Picked]) -> Picked:
    """One of the choices, each as likely as another."""
    return choices[min(int(unit * len(choices)), len(choices) - 1)]


def tokens(unit: float, kind: float, most: int = 8192) -> int:
    """A count of tokens: a power of two for half of all `kind`, a multiple of 8 for a quarter, any number else."""
    count = log_uniform(unit, 1, most)
    if kind < 0.5:
        return int(2 ** round(math.log2(count)))
    return max(1, round(count / 8)) * 8 if kind < 0.75 else max(1, round(count))
