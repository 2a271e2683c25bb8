"""What a GEMM must give: float64 values, and a bound on the error of an honest kernel that no mutant stays within."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.base import Array, Expected

Float64 = NDArray[np.float64]

SAFETY = 4.0
"""c of the bound; see `expected`."""

MOST_FLOPS = 4e9
MOST_ELEMENTS = 1 << 20
"""Beyond either, elements of D are sampled. All of 1024 x 1024 x 1024 is looked at, and every 17th row and column of
8192 of each; half a second of NumPy on two cores, most of which is gathering rows."""

_FRACTION_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53, "int32": math.inf}
_SMALLEST = {"bfloat16": 2.0**-133, "float16": 2.0**-24, "float32": 2.0**-149}
"""The spacing of a type's numbers near zero, where results may come near it."""

STEEPEST = {"none": 1.0, "relu": 1.0, "gelu": 1.13, "silu": 1.10}
"""The largest slope of each activation, rounded up: how much of an error before it comes out of it."""
ACTIVATION_ROUNDINGS = 8
"""In units of u |x|. The exponential and the error function of GPUs are within 2 units in the last place, which is 4 u;
then come a division or a product, a sum, and the argument's own rounding."""

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What becomes of the sums: a bias for each row, an activation, and the type that D has (NumPy's name)."""

    bias: Array | None = None
    activation: str = "none"
    dest: str = ""


PLAIN = Epilogue()


def expected(
    a: Array, b: Array, c: Array | None, alpha: float, beta: float, sums: str = "", epilogue: Epilogue = PLAIN
) -> Expected:
    """activation(alpha A B + bias) + beta C for logical arrays (M x K, K x N, M x N, each with the batch last, if any).

    Integers are exact; they wrap around at 32 bits as the hardware's do, and float64 holds them up to 2^53. Of all
    other types, the bound without bias and activation is

        |alpha| (c sqrt(K) + 2) u |A||B| + 2 u |beta C|,   c = 4,

    u being the unit roundoff of the type of the sums (the operands' own, or NumPy's name of a wider one) plus that of
    float64. Where sums are wider than the operands, rounding the output to the narrow type v comes on top: at most half
    a spacing of v's numbers at the value plus what went before, or near zero. Where it comes from: a sum of K products
    commits at most 2K - 1 roundings, whatever its order. Each is at most u times a partial sum. For K <= 16 the
    worst case, (K + O(u)) u |A||B|, lies below c sqrt(K). For larger K roundings are taken as independent with mean
    zero (Higham and Mary, SIAM J. Sci. Comput. 41 (2019) A2815), so that their effects add like a random walk: partial
    sums s_k of terms of like size are at most (k/K)|A||B|, a rounding's standard deviation is at most u/sqrt(3), hence
    that of the error at most u sqrt(sum s_k^2 / 3) = u sqrt(K) |A||B| / 3. The bound is 12 of these for a sequential
    sum of terms with one sign, and more for any other. The 2 u are for the product with alpha and the rounding of the
    output, the last term for the product with beta and the rounding of the output.

    (|A||B|)_ij is replaced by the product of the norms of row i of A and column j of B, which is no smaller
    (Cauchy-Schwarz), for magnitudes in [0.5, 1) at most 6 % larger, and costs no second matrix product.

    A missing term changes an element by at least 1/4 for such inputs: more than the bound up to K = 15,000 in single
    precision, and in some element of a large D up to K = 35,000.
    """
    sample = _Sample.of(a, b)
    a64, b64 = _matrices(a, sample.rows, None, sample.batches), _matrices(b, None, sample.columns, sample.batches)
    value = alpha * (a64 @ b64)
    sums = sums or a.dtype.name
    u = _roundoff(sums) + (_roundoff("float64") if sums != "int32" else 0.0)
    growth = abs(alpha) * (SAFETY * math.sqrt(a.shape[1]) + 2) * u
    bound = growth * np.linalg.norm(a64, axis=2)[:, :, None] * np.linalg.norm(b64, axis=1)[:, None, :]
    if epilogue.bias is not None:
        bias = epilogue.bias.astype(np.float64)
        addend = (bias if sample.rows is None else bias[sample.rows])[None, :, None]
        value += addend
        bound += 2 * u * np.abs(addend)
    if epilogue.activation != "none":
        bound = STEEPEST[epilogue.activation] * bound + ACTIVATION_ROUNDINGS * u * np.abs(value)
        value = activated(epilogue.activation, value)
    if c is not None and beta:
        addend = beta * _matrices(c, sample.rows, sample.columns, sample.batches)
        value += addend
        bound += 2 * u * np.abs(addend)
    dest = epilogue.dest or a.dtype.name
    if sums == "int32":
        value = value.astype(np.int64).astype(np.int32)
    elif dest != sums:
        bound += _roundoff(dest) * (np.abs(value) + bound) + _SMALLEST[dest] / 2
    return Expected(sample.where(a.ndim == 3), _logical(value, a.ndim), _logical(bound, a.ndim))


def activated(name: str, x: Float64) -> Float64:
    """max(x, 0), x (1 + erf(x / sqrt 2)) / 2, or x / (1 + exp(-x)); Hendrycks and Gimpel, arXiv:1606.08415."""
    # Imported here: the light part of the library has no use for it.
    from scipy.special import erf, expit

    functions: dict[str, Callable[[Float64], Float64]] = {
        "none": lambda x: x,
        "relu": lambda x: np.maximum(x, 0),
        "gelu": lambda x: x * (0.5 * (1 + erf(x / math.sqrt(2)))),
        "silu": lambda x: x * expit(x),
    }
    return functions[name](x)


def _roundoff(dtype: str) -> float:
    return float(2.0 ** -_FRACTION_BITS[dtype])


@dataclass(frozen=True)
class _Sample:
    """Which rows, columns and matrices of D are looked at; None means all."""

    rows: NDArray[np.intp] | None
    columns: NDArray[np.intp] | None
    batches: NDArray[np.intp] | None

    @staticmethod
    def of(a: Array, b: Array) -> _Sample:
        """All of D if it can be had within `MOST_FLOPS` and `MOST_ELEMENTS`, else a grid with its first and last
        rows, columns and matrices, thinned equally in both directions so that no macro tile is left out."""
        (m, k), n = a.shape[:2], b.shape[1]
        batch = a.shape[2] if a.ndim == 3 else 1
        affordable = min(MOST_FLOPS / max(2 * k, 1), MOST_ELEMENTS)
        if m * n * batch <= affordable:
            return _Sample(None, None, None)
        matrices = min(batch, 8)
        thinned = math.sqrt(affordable / matrices / (m * n))
        rows = min(m, max(2, int(m * thinned)))
        columns = min(n, max(2, int(affordable / matrices / rows)))
        rows = min(m, max(2, int(affordable / matrices / columns)))
        return _Sample(spread(m, rows), spread(n, columns), spread(batch, matrices))

    def where(self, batched: bool) -> tuple[Any, ...]:
        if self.rows is None or self.columns is None or self.batches is None:
            return (...,)
        return np.ix_(self.rows, self.columns, self.batches) if batched else np.ix_(self.rows, self.columns)


def spread(extent: int, count: int) -> NDArray[np.intp]:
    """At most `count` places of `extent`, ascending: the first, the last, and one in each equal part between.

    Where in its part a place lies follows the golden ratio, so that places fall on every position within a tile
    instead of always the same one.
    """
    if count >= extent:
        return np.arange(extent)
    if count == 1:
        return np.array([extent - 1])
    parts = np.arange(count)
    places = ((parts + parts * _GOLDEN % 1.0) * (extent / count)).astype(np.intp)
    places[0], places[-1] = 0, extent - 1
    return np.unique(places)


def _matrices(
    logical: Array,
    rows: NDArray[np.intp] | None,
    columns: NDArray[np.intp] | None,
    batches: NDArray[np.intp] | None,
) -> Float64:
    """The chosen part as float64, batch first and each matrix contiguous, which is what BLAS is fast on."""
    stack = np.moveaxis(logical, 2, 0) if logical.ndim == 3 else logical[None]
    if batches is not None:
        stack = stack[batches]
    for places, axis in ((rows, 1), (columns, 2)):
        if places is not None:
            stack = _taken(stack, places, axis)
    return np.ascontiguousarray(stack, dtype=np.float64)


def _taken(stack: Array, places: NDArray[np.intp], axis: int) -> Array:
    """Rows or columns of each matrix, whichever way it lies in memory."""
    if stack.strides[2] > stack.strides[1]:
        return _taken(stack.transpose(0, 2, 1), places, 3 - axis).transpose(0, 2, 1)
    # `take` is several times as fast within rows, and copies all of what is not contiguous first.
    return np.take(stack, places, axis=2) if axis == 2 and stack.flags.c_contiguous else stack[_along(axis, places)]


def _along(axis: int, places: NDArray[np.intp]) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, places)


def _logical(stack: Float64, ndim: int) -> Float64:
    return np.moveaxis(stack, 0, 2) if ndim == 3 else stack[0]
