"""Random contents of big arrays at the speed of memory: about a million numbers are drawn, then repeated."""

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
    """An array of the given shape. `draw(shape)` makes an array of random numbers.

    An array of no more elements than a period is as drawn. A larger array repeats a row of `period` numbers in C order,
    the order of storage. No wrong program passes because of the repetition:

    - Two elements hold the same number of the row only if they are a multiple of the period apart. The period is a
      prime that divides no distance between neighbours of any dimension (the products of the last extents), so it
      divides no `steps` x `distance` either, unless the number of steps along that dimension is a multiple of the
      period. Hence a program that takes rows, columns, tiles, K steps or matrices of a batch for one another reads
      different numbers in every element, if they are fewer than a million apart. So does a program whose addresses are
      off by less than a million.
    - A reader that is off in two dimensions at once meets its own numbers only if both errors together are a multiple
      of the period. For a given error in one dimension that is at most one error in a million of the other dimension,
      and no power of two, tile or leading dimension is such an error.
    - Nothing is assumed about how different numbers compare: `draw` answers for that, as for an array without a period.

    Each array of a problem is drawn separately, so no operand repeats another's row.
    """
    count = math.prod(shape)
    period = _period(shape)
    if count <= period:
        return draw(shape)
    return np.resize(draw((period,)), shape)


def _period(shape: Shape) -> int:
    """The first prime of PERIODS that divides no distance in storage between neighbours; the first of all if none."""
    distances = list(accumulate(reversed(shape), mul, initial=1))[:-1]
    free = (prime for prime in PERIODS if all(distance % prime for distance in distances))
    return next(free, PERIODS[0])
