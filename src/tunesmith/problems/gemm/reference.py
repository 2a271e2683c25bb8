"""The reference of a GEMM: D in float64, and the tolerance that a kernel's D must keep to.

The tolerance is a bound on the rounding errors of a correct kernel. The docstring of `expected` has its formula and
derivation. The bound is small enough that kernels with a mistake, such as a missing term, exceed it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.base import Array, Expected

Float64 = NDArray[np.float64]

SAFETY = 4.0
"""The factor c of the tolerance; `expected` derives it."""

MOST_FLOPS = 4e9
MOST_ELEMENTS = 1 << 20
MOST_READ = 1 << 23
"""Beyond either of the first two limits, D is checked at sampled elements. All of 1024 x 1024 x 1024 is checked, but
only every 17th row and column of 8192 x 8192 x 8192. The third is for products with few columns or few rows, whose
operands have many more elements than D: no more than so many elements of an operand are read (every 56th row of
57344 x 1 x 8192), of a batch by eight matrices. NumPy takes a tenth of a second of one core for a product at
the limits."""

_FRACTION_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53, "int32": math.inf}
_SMALLEST = {"bfloat16": 2.0**-133, "float16": 2.0**-24, "float32": 2.0**-149}
"""The spacing of a type's numbers near zero, for the types whose results may come near zero."""

STEEPEST = {"none": 1.0, "relu": 1.0, "gelu": 1.13, "silu": 1.10}
"""The largest slope of each activation, rounded up: the factor by which it enlarges an error of its argument."""
ACTIVATION_ROUNDINGS = 8
"""The error of an activation, in units of u |x|. The exponential and the error function of GPUs are within 2 units in
the last place, which is 4 u; then come a division or a product, a sum, and the argument's own rounding."""

WIDE_BYTES = 4
"""The size of float32."""

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What follows the sums: a bias for each row, an activation, and the rounding to D's type (NumPy's name)."""

    bias: Array | None = None
    activation: str = "none"
    dest: str = ""


PLAIN = Epilogue()


def expected(
    a: Array, b: Array, c: Array | None, alpha: float, beta: float, sums: str = "", epilogue: Epilogue = PLAIN
) -> Expected:
    """activation(alpha A B + bias) + beta C and its tolerance, for logical arrays.

    The arrays are M x K, K x N and M x N, each with the batch last, if there is one. `sums` is NumPy's name of the type
    of the sums; empty stands for the operands' type.

    Integers have no tolerance: they wrap around at 32 bits as the hardware's do, and float64 holds them up to 2^53. For
    all other types, the tolerance without bias and activation is

        |alpha| (c sqrt(K) + 2) u |A||B| + 2 u |beta C|,   c = 4,

    where u is the unit roundoff of the type of the sums plus that of float64. If the sums are wider than D's type v,
    rounding to v is added: at most half a spacing of v's numbers at the value plus the error so far, or near zero.

    Derivation: a sum of K products commits at most 2K - 1 roundings, whatever its order. Each is at most u times a
    partial sum. For K <= 16 the worst case, (K + O(u)) u |A||B|, lies below c sqrt(K). For larger K roundings are taken
    as independent with mean zero (Higham and Mary, SIAM J. Sci. Comput. 41 (2019) A2815), so that their effects add
    like a random walk: partial sums s_k of terms of like size are at most (k/K)|A||B|, and a rounding's standard
    deviation is at most u/sqrt(3). Hence the error's standard deviation is at most
    u sqrt(sum s_k^2 / 3) = u sqrt(K) |A||B| / 3. The bound is 12 standard deviations for a sequential sum of terms with
    one sign, and more for any other sum. The 2 u are for the product with alpha and the rounding of the output, the
    last term for the product with beta and the rounding of the output.

    (|A||B|)_ij is replaced by the product of the norms of row i of A and column j of B. This product is no smaller
    (Cauchy-Schwarz), at most 6 % larger for magnitudes in [0.5, 1), and costs no second matrix product.

    For such inputs a missing term changes an element by at least 1/4. That is more than the bound up to K = 15,000 in
    single precision, and in some element of a large D up to K = 35,000.
    """
    sample = _Sample.of(a, b)
    a64, b64 = _matrices(a, sample.rows, None, sample.batches), _matrices(b, None, sample.columns, sample.batches)
    value = alpha * (a64 @ b64)
    sums = sums or a.dtype.name
    u = _roundoff(sums) + (_roundoff("float64") if sums != "int32" else 0.0)
    growth = abs(alpha) * (SAFETY * math.sqrt(a.shape[1]) + 2) * u
    bound = growth * _norms(a64, "bij,bij->bi")[:, :, None] * _norms(b64, "bij,bij->bj")[:, None, :]
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
    # Imported here because the light part of the library must not need SciPy.
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
    """The rows, columns and matrices of D that are checked; None means all."""

    rows: NDArray[np.intp] | None
    columns: NDArray[np.intp] | None
    batches: NDArray[np.intp] | None

    @staticmethod
    def of(a: Array, b: Array) -> _Sample:
        """All of D if it stays within `MOST_FLOPS`, `MOST_ELEMENTS` and `MOST_READ`, otherwise a grid of rows, columns
        and matrices.

        The grid has the first and the last of each. It is thinned equally in both directions, so that every macro tile
        is sampled, and further in one direction if too much of an operand would be read.
        """
        (m, k), n = a.shape[:2], b.shape[1]
        batch = a.shape[2] if a.ndim == 3 else 1
        affordable = min(MOST_FLOPS / max(2 * k, 1), MOST_ELEMENTS)
        matrices = min(batch, 8)
        if m * n * batch <= affordable and max(m, n) * k * matrices <= MOST_READ:
            return _Sample(None, None, None)
        readable = max(2, MOST_READ // (matrices * max(k, 1)))
        thinned = math.sqrt(affordable / matrices / (m * n))
        rows = min(m, max(2, int(m * thinned)))
        columns = min(n, max(2, int(affordable / matrices / rows)), readable)
        rows = min(m, max(2, int(affordable / matrices / columns)), readable)
        return _Sample(spread(m, rows), spread(n, columns), spread(batch, matrices))

    def where(self, batched: bool) -> tuple[Any, ...]:
        if self.rows is None or self.columns is None or self.batches is None:
            return (...,)
        return np.ix_(self.rows, self.columns, self.batches) if batched else np.ix_(self.rows, self.columns)


def spread(extent: int, count: int) -> NDArray[np.intp]:
    """At most `count` indices below `extent`, ascending: the first, the last, and one in each equal part between.

    The position of an index in its part follows the golden ratio. So the indices fall on every position within a tile,
    not always on the same position.
    """
    if count >= extent:
        return np.arange(extent)
    if count == 1:
        return np.array([extent - 1])
    parts = np.arange(count)
    indices = ((parts + parts * _GOLDEN % 1.0) * (extent / count)).astype(np.intp)
    indices[0], indices[-1] = 0, extent - 1
    return np.unique(indices)


def _matrices(
    logical: Array,
    rows: NDArray[np.intp] | None,
    columns: NDArray[np.intp] | None,
    batches: NDArray[np.intp] | None,
) -> Float64:
    """The chosen part as float64, with the batch first. Each matrix keeps its own order, which BLAS takes as it is, if
    its rows or its columns are contiguous; else the part is copied in C's order."""
    stack = np.moveaxis(logical, 2, 0) if logical.ndim == 3 else logical[None]
    if batches is not None and len(batches) < len(stack):  # to index all of them would copy them
        stack = stack[batches]
    for indices, axis in ((rows, 1), (columns, 2)):
        if indices is not None:
            stack = _taken(stack, indices, axis)
    order: Literal["K", "C"] = "K" if stack.itemsize in stack.strides[1:] else "C"
    # NumPy converts a narrow type's numbers to float32, which holds all of them, four times as fast as to float64.
    narrow = stack.dtype.kind in "fV" and stack.dtype.itemsize < WIDE_BYTES
    return (stack.astype(np.float32, order) if narrow else stack).astype(np.float64, order, copy=False)


def _norms(stack: Float64, sums: str) -> Float64:
    """Norms of rows or columns of each matrix, as `einsum` writes these sums: ten times as fast as `linalg.norm`."""
    norms: Float64 = np.sqrt(np.einsum(sums, stack, stack))
    return norms


def _taken(stack: Array, indices: NDArray[np.intp], axis: int) -> Array:
    """Rows or columns of each matrix, for row-major and column-major matrices."""
    if stack.strides[2] > stack.strides[1]:
        return _taken(stack.transpose(0, 2, 1), indices, 3 - axis).transpose(0, 2, 1)
    # `take` is several times as fast within rows, but first copies an array that is not contiguous.
    return np.take(stack, indices, axis=2) if axis == 2 and stack.flags.c_contiguous else stack[_along(axis, indices)]


def _along(axis: int, indices: NDArray[np.intp]) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, indices)


def _logical(stack: Float64, ndim: int) -> Float64:
    return np.moveaxis(stack, 0, 2) if ndim == 3 else stack[0]
