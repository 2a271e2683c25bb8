"""Random operands that let no mistake hide: far from zero, and exact where the hardware's sums are inexact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.base import Array
from tunesmith.problems.fill import repeated
from tunesmith.records import Operand

from .type import Gemm

Numbers = NDArray[Any]

_TF32_KEEPS = 0xFFFFE000
"""The bits of a float32 that TF32 keeps: the sign, the exponent and 10 bits of the fraction."""

SCALE_RANGE = (0.5, 2.0)


def random_numbers(operand: Operand, gemm: Gemm, random: np.random.Generator) -> Array:
    """An operand's numbers in its type, in the order of its storage: the dimension with the largest stride first.

    A big operand repeats its numbers (`fill.repeated`). Signs are random. Magnitudes of A and B are uniform in
    [0.5, 1), so that no product is smaller than 1/4 and a missing term shows. C and the bias are sqrt(K) times as
    large, because they are added to sums of K terms: otherwise a kernel that forgets them would stay within the bound.
    Some types need more:

    - TF32 keeps 11 bits of each operand, so the operands have no more: the products are exact, and the bound is
      float32's.
    - float8 operands are 1/2 or 1. Hopper adds their products in registers of about 14 bits. Sums of multiples of 1/4
      are exact there up to 2048, which is nine standard deviations at K = 131,072.
    - int8 operands are from 64 to 127; their sums are exact.
    """
    extents = tuple(operand.shape[axis] for axis in storage_order(operand))
    return repeated(extents, lambda shape: _drawn(shape, operand, gemm, random).astype(operand.dtype))


def storage_order(operand: Operand) -> list[int]:
    """The axes of an operand, from the largest stride to the smallest."""
    return sorted(range(len(operand.shape)), key=lambda axis: operand.strides[axis], reverse=True)


def _drawn(shape: tuple[int, ...], operand: Operand, gemm: Gemm, random: np.random.Generator) -> Numbers:
    if operand.name.startswith("Scale"):
        return random.uniform(*SCALE_RANGE, shape)
    numbers = factors(random, shape, operand.dtype)
    if gemm.tf32 and operand.name in "AB":
        return (numbers.view(np.uint32) & np.uint32(_TF32_KEEPS)).view(np.float32)
    if operand.name in ("C", "Bias") and not operand.dtype.startswith(("int", "float8")):
        numbers *= math.sqrt(max(gemm.k, 1))
    return numbers


def factors(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Numbers:
    """Numbers to multiply, with random signs, not yet converted to `dtype`.

    Magnitudes are in [0.5, 1), but 1/2 or 1 for a float8 and 64 to 127 for an integer; `random_numbers` says why.
    """
    if dtype in ("int8", "int32"):
        return random.integers(64, 128, shape, dtype=np.int8) * _signs(random, shape)
    if dtype.startswith("float8"):
        return (0.5 + 0.5 * random.integers(0, 2, shape, dtype=np.int8)) * _signs(random, shape)
    return _no_zeros(random, shape, dtype)


def _no_zeros(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Numbers:
    """Uniform in (-1, -0.5] and [0.5, 1) from one draw each: u - 1/2, moved away from zero by 1/2."""
    precision = np.float64 if dtype == "float64" else np.float32
    centred = random.random(shape, dtype=precision) - precision(0.5)
    return centred + np.copysign(precision(0.5), centred)


def _signs(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    return 2 * random.integers(0, 2, shape, dtype=np.int8) - 1
