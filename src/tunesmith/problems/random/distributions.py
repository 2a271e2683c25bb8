"""The reference of random distributions: the values that random words give, in float64, and the tolerance of a kernel.

`values_of` is for pseudo-random generators, `quasi_values_of` for Sobol' points. The kernels' side is
`kernels/random/source/distributions.h`.

Integers and uniform numbers have no tolerance. For all others the tolerance adds up the errors that the device's
functions may have, in units of the roundoff u = 2^-24 (2^-53) relative to the value. A normal number of Box and
Muller's method has half of the logarithm's 4 u, a square root of 3 units in the last place (6 u), sine or cosine with
its angle (3 u) and the product (u). In single precision a GPU's own sine adds 2^-20.9 and the roundoff of an angle up
to pi, each times the radius. Sources: OpenCL 3.0, section 7.4 (sqrt 3 ulp, exp 3 ulp, log 3 ulp, sinpi and cospi 4
ulp); the CUDA C++ programming guide, mathematical functions (nowhere looser) and intrinsic functions (__sinf, __cosf).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Configuration

from .generators import DTYPES
from .poisson import poisson_table, tabulated

Words = NDArray[np.uint32]
Points = NDArray[np.unsignedinteger[Any]]
Reals = NDArray[np.float64]

_BOX_MULLER = 12.0
"""Units of roundoff in a normal number of Box and Muller's method."""
_SINE_UNIT = 2.0**-20.9 + 2 * np.pi * 2.0**-24
"""The absolute error of a sine in single precision: the unit's own error, and an angle of up to pi rounded twice."""
_QUANTILE = 32.0
"""Units of roundoff in an inverse of the normal distribution function. Its polynomials leave 16 in double precision (3
in single); evaluating them, the logarithm in them, their argument and the product add 3, 4, 4 and 1."""
_EXPONENTIAL = 8.0
"""Units of roundoff in the exponential of a log-normal number."""


@dataclass(frozen=True, slots=True)
class Values:
    """Values and their tolerance, both of shape (vectors, values of a vector). Integers stay integers, with bound 0."""

    value: NDArray[np.generic]
    bound: Reals


def values_of(distribution: str, value_type: str, words: Words, scalars: Configuration) -> Values:
    """The values that words of shape (vectors, words of a vector) give, for pseudo-random generators."""
    match distribution:
        case "uniform":
            return _exact(_uniform(value_type, words))
        case "poisson":
            return _poisson(words[:, :1], scalars)
        case _:
            normal = _box_muller(value_type, words)
            error = _BOX_MULLER * _roundoff(value_type) * np.abs(normal)
            if value_type != "double":
                error += _SINE_UNIT * np.hypot(normal[:, :1], normal[:, 1:])
            return _shaped(distribution, value_type, normal, error, scalars)


def quasi_values_of(distribution: str, value_type: str, words: Points, scalars: Configuration) -> Values:
    """The values that points of shape (points, 1) in uint32 or uint64 give, one for each point."""
    bits = words.dtype.itemsize * 8
    top = (words >> words.dtype.type(bits - 32)).astype(np.uint32)
    match distribution:
        case "uniform":
            return _exact(_quasi_uniform(value_type, words, top))
        case "poisson":
            return _poisson(top, scalars)
        case _:
            normal = _quantile(words if value_type == "double" else top)
            error = _QUANTILE * _roundoff(value_type) * np.abs(normal)
            return _shaped(distribution, value_type, normal, error, scalars)


def _exact(value: NDArray[np.generic]) -> Values:
    return Values(value, np.zeros(value.shape))


def _uniform(value_type: str, words: Words) -> NDArray[np.generic]:
    match value_type:
        case "unsigned_char" | "unsigned_short" | "unsigned_int":
            return np.ascontiguousarray(words).view(DTYPES[value_type])
        case "unsigned_long_long":
            return _joined(words)[:, None]
        case "float":
            return _unit_float(words)
        case "double":
            return _unit_double(words)[:, None]
        case _:
            return _unit_half(np.ascontiguousarray(words).view(np.uint16))


def _quasi_uniform(value_type: str, words: Points, top: Words) -> NDArray[np.generic]:
    is_long = words.dtype.itemsize == 8
    match value_type:
        case "unsigned_char" | "unsigned_short" | "unsigned_int":
            dtype = np.dtype(DTYPES[value_type])
            return (top >> np.uint32(32 - 8 * dtype.itemsize)).astype(dtype)
        case "unsigned_long_long":
            return words if is_long else words.astype(np.uint64) << np.uint64(32)
        case "float":
            return _unit_float(top)
        case "double":
            return _unit_of_64(words.astype(np.uint64)) if is_long else _unit_double(top)[:, None]
        case _:
            return _unit_half(top >> np.uint32(16))


def _joined(words: Words) -> NDArray[np.uint64]:
    return words[:, 0].astype(np.uint64) | words[:, 1].astype(np.uint64) << np.uint64(32)


def _unit_half(words: NDArray[np.unsignedinteger[Any]]) -> Reals:
    return ((words + 1.0) * 2.0**-16).astype(np.float16).astype(np.float64)


def _unit_float(words: Words) -> Reals:
    """Floats in (0, 1]; the word and the sum are rounded once each, as on the device."""
    scale = np.float32(2.0**-32)
    return (words.astype(np.float32) * scale + scale).astype(np.float64)


def _unit_double(words: Words) -> Reals:
    """Doubles in (0, 1]: of 32 bits from one word, or of 53 bits from two words."""
    if words.shape[1] == 1:
        return np.asarray((words[:, 0] + 1.0) * 2.0**-32)
    return _unit_of_64(_joined(words))


def _unit_of_64(words: NDArray[np.uint64]) -> Reals:
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53)


def _box_muller(value_type: str, words: Words) -> Reals:
    match value_type:
        case "half":
            u = np.asarray(((words & 0xFFFF) + 1.0) * 2.0**-16, np.float64)
            turns = np.asarray((words >> np.uint32(16)) * 2.0**-16, np.float64)
        case "float":
            u, turns = _unit_float(words[:, :1]), np.asarray(words[:, 1:] * 2.0**-32, np.float64)
        case _:
            half = words.shape[1] // 2
            u, turns = _unit_double(words[:, :half])[:, None], _turns(words[:, half:])[:, None]
    radius = np.sqrt(-2 * np.log(u))
    sine, cosine = _sine_cosine(turns)
    return np.concatenate([radius * sine, radius * cosine], axis=1)


def _turns(words: Words) -> Reals:
    if words.shape[1] == 1:
        return np.asarray(words[:, 0] * 2.0**-32)
    return np.asarray((_joined(words) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _sine_cosine(turns: Reals) -> tuple[Reals, Reals]:
    """Sine and cosine of an angle in turns, exact at quarter turns, where those of 2 pi times a float64 are not."""
    quarter = np.rint(4 * turns)
    rest = 2 * np.pi * (turns - quarter / 4)
    sine, cosine = np.sin(rest), np.cos(rest)
    quadrant = quarter.astype(np.int64) % 4
    return (
        np.choose(quadrant, [sine, cosine, -sine, -cosine]),
        np.choose(quadrant, [cosine, -sine, -cosine, sine]),
    )


def _quantile(words: Points) -> Reals:
    """The normal quantile at the middle of the interval that a word stands for.

    Close to the median it is computed from the distance to 1/2, elsewhere from the nearer tail.
    """
    from scipy.special import erfinv, ndtri

    bits = words.dtype.itemsize * 8
    half = words.dtype.type(1 << (bits - 1))
    distance = ((words ^ half).view(f"i{bits // 8}").astype(np.float64) + 0.5) * 2.0 ** (1 - bits)
    tail = (np.where(words >= half, ~words, words).astype(np.float64) + 0.5) * 2.0**-bits
    from_tail = np.copysign(ndtri(tail), distance)
    return np.asarray(np.where(np.abs(distance) < 0.5, math.sqrt(2) * erfinv(distance), from_tail))


def _roundoff(value_type: str) -> float:
    return 2.0**-53 if value_type == "double" else 2.0**-24


def _shaped(distribution: str, value_type: str, normal: Reals, error: Reals, scalars: Configuration) -> Values:
    """mean + stddev z, or its exponential, for z with errors up to `error`; the bound includes the final rounding."""
    u = _roundoff(value_type)
    as_stored = np.float64 if value_type == "double" else np.float32
    mean, deviation = (float(as_stored(float(scalars[name]))) for name in ("mean", "stddev"))  # type: ignore[arg-type]
    value = mean + deviation * normal
    bound = deviation * error + 2 * u * np.abs(value)
    if distribution == "log_normal":
        value = np.exp(value)
        bound = value * (np.expm1(bound) + _EXPONENTIAL * u)
    if value_type == "half":
        rounded = value.astype(np.float16).astype(np.float64)
        spacing = np.spacing(np.abs(value + bound).astype(np.float16)).astype(np.float64)
        return Values(rounded, bound + spacing)
    return Values(value, bound)


def _poisson(words: Words, scalars: Configuration) -> Values:
    mean = float(scalars["lambda"])  # type: ignore[arg-type]  # a number by its key
    table = poisson_table(mean)
    if table.bits:
        return _exact(tabulated(table, words))
    single = np.float32
    root, fraction = float(single(np.sqrt(mean))), float(single(mean - table.base))
    away = root * _quantile(words)
    value = np.maximum(np.rint(away + fraction), -table.base) + table.base
    # If the sum is near a half, roundoff decides between two neighbours.
    bound = np.ceil(_QUANTILE * 2.0**-24 * np.abs(away)) + 0.0
    return Values(value, bound)
