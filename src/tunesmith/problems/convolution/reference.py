"""The reference of a convolution: elements of the written array in float64, with the tolerance of a kernel's result.

A convolution is computed as its implicit product, so the tolerance is a GEMM's: `gemm/reference.py` derives it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.base import Array, Expected
from tunesmith.problems.gemm.reference import MOST_ELEMENTS, MOST_FLOPS, Epilogue, spread
from tunesmith.problems.gemm.reference import expected as expected_product

from .fields import Direction
from .type import Convolution, Extents, ImplicitGemm

Positions = NDArray[np.intp]
Float64 = NDArray[np.float64]

MOST_GATHERED = 1 << 23
"""The most elements of the implicit product's two matrices that are gathered, which takes about half a second. Of
larger matrices, rows and columns are sampled."""


def expected(convolution: Convolution, arrays: Mapping[str, Array]) -> Expected:
    """The written array with its tolerance, from the logical arrays that are read (`ConvolutionOperation.operands`).

    Rows, columns and groups of the implicit product are gathered and multiplied like a GEMM's operands. A tap that lies
    outside of an image or between the steps of a stride gives a zero. So the tolerance is that of a GEMM with the
    implicit K (`gemm.reference.expected`): it holds for every order of the sum, and also for a kernel that adds the
    zeros. `where` indexes the elements of big problems one by one.
    """
    product = convolution.implicit_gemm
    rows, columns, groups = _sample(product)
    summed = np.arange(product.k)
    # The axes are the row, the column or summed index, and last the group.
    m, n, g = rows[:, None, None], columns[None, :, None], groups[None, None, :]
    k_of_a, k_of_b = summed[None, :, None], summed[:, None, None]
    channels, filters = convolution.channels // convolution.groups, convolution.filters // convolution.groups
    match convolution.direction:
        case Direction.FORWARD:
            pixels, (c_a, *taps_a), (c_b, *taps_b) = (
                np.unravel_index(m, (convolution.images, *convolution.output)),
                np.unravel_index(k_of_a, (channels, *convolution.taps)),
                np.unravel_index(k_of_b, (channels, *convolution.taps)),
            )
            input_pixels = _input_pixels(convolution, pixels[1:], taps_a)
            a = _elements_at(arrays["Input"], (pixels[0], g * channels + c_a, *input_pixels))
            b = _elements_at(arrays["Filter"], (g * filters + n, c_b, *taps_b))
            where = (pixels[0], g * filters + n, *pixels[1:])
        case Direction.BACKWARD_DATA:
            pixels, (k_a, *taps_a), (k_b, *taps_b) = (
                np.unravel_index(m, (convolution.images, *convolution.image)),
                np.unravel_index(k_of_a, (filters, *convolution.taps)),
                np.unravel_index(k_of_b, (filters, *convolution.taps)),
            )
            output_pixels = _output_pixels(convolution, pixels[1:], taps_a)
            a = _elements_at(arrays["Output"], (pixels[0], g * filters + k_a, *output_pixels))
            b = _elements_at(arrays["Filter"], (g * filters + k_b, n, *taps_b))
            where = (pixels[0], g * channels + n, *pixels[1:])
        case Direction.BACKWARD_WEIGHTS:
            pixels_a, pixels_b, (c, *taps) = (
                np.unravel_index(k_of_a, (convolution.images, *convolution.output)),
                np.unravel_index(k_of_b, (convolution.images, *convolution.output)),
                np.unravel_index(n, (channels, *convolution.taps)),
            )
            input_pixels = _input_pixels(convolution, pixels_b[1:], taps)
            a = _elements_at(arrays["Output"], (pixels_a[0], g * filters + m, *pixels_a[1:]))
            b = _elements_at(arrays["Input"], (pixels_b[0], g * channels + c, *input_pixels))
            where = (g * filters + m, c, *taps)
    product_expected = expected_product(a, b, None, 1.0, 0.0, convolution.sums, Epilogue(dest=convolution.dest))
    return Expected(where, product_expected.value, product_expected.bound)


def _sample(product: ImplicitGemm) -> tuple[Positions, Positions, Positions]:
    """Rows, columns and groups to check: all if that is quick, otherwise a grid with the first and the last of each."""
    groups = min(product.groups, 8)
    affordable = int(min(MOST_FLOPS / (2 * product.k), MOST_ELEMENTS) / groups)
    gathered = max(2, MOST_GATHERED // (product.k * groups))
    # If there are few rows or few columns, the other dimension gets the rest of the share.
    rows = min(product.m, max(gathered // 2, gathered - product.n))
    columns = min(product.n, gathered - rows)
    if rows * columns > affordable:
        thinned = math.sqrt(affordable / (rows * columns))
        rows = max(1, int(rows * thinned))
        columns = max(1, min(columns, affordable // rows))
    return spread(product.m, rows), spread(product.n, columns), spread(product.groups, groups)


def _input_pixels(convolution: Convolution, pixels: Sequence[Positions], taps: Sequence[Positions]) -> list[Positions]:
    """Along each axis, the input's pixel that a tap of an output's pixel reads; outside of the image lies padding."""
    steps = zip(pixels, taps, convolution.stride, convolution.padding, convolution.dilation, strict=True)
    return [pixel * stride - padding + tap * dilation for pixel, tap, stride, padding, dilation in steps]


def _output_pixels(convolution: Convolution, pixels: Sequence[Positions], taps: Sequence[Positions]) -> list[Positions]:
    """Along each axis, the output's pixel whose tap reads an input's pixel; -1 if there is none."""
    steps = zip(pixels, taps, convolution.stride, convolution.padding, convolution.dilation, strict=True)
    output_pixels = []
    for pixel, tap, stride, padding, dilation in steps:
        distance = pixel + padding - tap * dilation
        output_pixels.append(np.where(distance % stride == 0, distance // stride, -1))
    return output_pixels


def _elements_at(array: Array, positions: Sequence[Positions]) -> Float64:
    """The elements at these positions as float64, broadcast; 0 for a position outside of the array."""
    extents: Extents = array.shape
    inside: Any = np.True_
    for position, extent in zip(positions, extents, strict=True):
        inside = inside & (position >= 0) & (position < extent)
    near = tuple(np.clip(position, 0, extent - 1) for position, extent in zip(positions, extents, strict=True))
    return np.where(inside, array[near].astype(np.float64), 0.0)
