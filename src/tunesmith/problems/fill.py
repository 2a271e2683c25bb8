"""Random contents of big arrays at the speed of memory: about a million numbers drawn, and repeated."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
Shape = tuple[int, ...]

PERIODS = (1_048_573, 1_048_571, 1_048_559)
"""The three largest primes below 2^20."""


def repeated(shape: Shape, draw: Callable[[Shape], Numbers]) -> Numbers:
    """An array of that shape from `draw`, which gives an array of random numbers of the shape that it is asked for.

    One of fewer elements than a period is as drawn. A larger one repeats a row of `period` numbers in C order, that of
    storage. No wrong program passes because of it:

    - Two elements hold the same number of that row only if they are a multiple of the period apart. The period is a
      prime that divides no distance between neighbours of any dimension (the products of the last extents), so it
      divides no `steps` x `distance` either, unless the number of steps along that dimension is a multiple of the
      period. Hence rows, columns, tiles, K steps and matrices of a batch that are taken for one another, however many
      apart below a million, differ in every element, as do elements whose address is off by less than a million.
    - A reader that is off in two dimensions at once meets its own numbers only where both errors together are a
      multiple of the period: for a given error in one dimension that is at most one error in a million of the other,
      and no power of two, tile or leading dimension among them leads there.
    - Nothing is assumed of how different numbers compare: that is `draw`'s promise, as for an array without a period.

    The arrays of a problem are drawn by themselves, so that no operand repeats another's row.
    """
    count = math.prod(shape)
    period = _period(shape)
    if count <= period:
        return draw(shape)
    return np.resize(draw((period,)), shape)


def _period(shape: Shape) -> int:
    """A prime that divides no distance in storage between neighbours; there is one, unless all three divide some."""
    distances = list(accumulate(reversed(shape), mul, initial=1))[:-1]
    free = (prime for prime in PERIODS if all(distance % prime for distance in distances))
    return next(free, PERIODS[0])
