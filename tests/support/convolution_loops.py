"""Convolution by direct loops over pixels, taps and channels, in float64: the other implementation that tests ask."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from tunesmith.problems.convolution import Convolution, Direction

Index = tuple[int, ...]
"""The place of an element, one number for each dimension."""


def terms(c: Convolution) -> Iterator[tuple[Index, Index, Index]]:
    """Index of the input, of the filter and of the output, for each product that a convolution sums."""
    per_group, filters = c.channels // c.groups, c.filters // c.groups
    for image, filter_, pixel in itertools.product(
        range(c.images), range(c.filters), itertools.product(*map(range, c.output))
    ):
        for channel, tap in itertools.product(range(per_group), itertools.product(*map(range, c.taps))):
            read = [
                pixel[axis] * c.stride[axis] - c.padding[axis] + tap[axis] * c.dilation[axis]
                for axis in range(len(c.image))
            ]
            if all(0 <= x < extent for x, extent in zip(read, c.image, strict=True)):
                in_group = filter_ // filters * per_group + channel
                yield (image, in_group, *read), (filter_, channel, *tap), (image, filter_, *pixel)


def direct(c: Convolution, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """What the direction computes, of logical arrays N x C x pixels."""
    shapes = {
        Direction.FORWARD: (c.images, c.filters, *c.output),
        Direction.BACKWARD_DATA: (c.images, c.channels, *c.image),
        Direction.BACKWARD_WEIGHTS: (c.filters, c.channels // c.groups, *c.taps),
    }
    made = np.zeros(shapes[c.direction])
    for of_input, of_filter, of_output in terms(c):
        match c.direction:
            case Direction.FORWARD:
                made[of_output] += float(arrays["Input"][of_input]) * float(arrays["Filter"][of_filter])
            case Direction.BACKWARD_DATA:
                made[of_input] += float(arrays["Output"][of_output]) * float(arrays["Filter"][of_filter])
            case Direction.BACKWARD_WEIGHTS:
                made[of_filter] += float(arrays["Input"][of_input]) * float(arrays["Output"][of_output])
    return made
